import { spawn } from 'node:child_process'

/** @type {Set<number>} */
const guarded = new Set()
/** @type {import('node:child_process').ChildProcess | null} */
let watcher = null

/** When we are killed outright, none of our handlers run, but the kernel closes our pipes. A shell waits for that. */
const WATCH = 'while read -r pid; do pids="$pids $pid"; done; kill -9 $pids 2>/dev/null'

function endAll() {
  watcher?.kill('SIGKILL')
  for (const pid of guarded) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It had already ended.
    }
  }
}

/**
 * Ensures that a process we started does not outlive us, however we end.
 * Call the returned function once the process has ended.
 *
 * @param {number} pid
 */
export function guardProcess(pid) {
  if (watcher === null) {
    // Runs in its own session, because Ctrl-C must not reach it.
    watcher = spawn('sh', ['-c', WATCH], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
    watcher.unref()
    const { stdin } = watcher
    if (stdin !== null && 'unref' in stdin && typeof stdin.unref === 'function') stdin.unref()
    process.on('exit', endAll)
  }
  guarded.add(pid)
  watcher.stdin?.write(`${pid}\n`)
  return () => void guarded.delete(pid)
}
