import { spawn } from 'node:child_process'

/** @type {Set<number>} */
const guarded = new Set()
/** @type {import('node:child_process').ChildProcess | null} */
let watcher = null

/** No handler of ours runs when we are killed outright. The kernel closes our pipes even then: a shell waits for that. */
const WATCH = 'while read -r pid; do pids="$pids $pid"; done; kill -9 $pids 2>/dev/null'

function endAll() {
  watcher?.kill('SIGKILL')
  for (const pid of guarded) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended by itself.
    }
  }
}

/**
 * Sees to it that a process we started does not outlive us, however we end.
 * The function returned calls that off; call it once the process has ended.
 *
 * @param {number} pid
 */
export function guardProcess(pid) {
  if (watcher === null) {
    // In a session of its own: Ctrl-C must not reach it.
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
