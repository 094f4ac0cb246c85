import { spawn } from 'node:child_process'
import { rmSync } from 'node:fs'

interface Guarded {
  readonly pid: number
  readonly dir: string
}

const guarded = new Set<Guarded>()

function endAll(): void {
  for (const { pid, dir } of guarded) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended by itself.
    }
    rmSync(dir, { recursive: true, force: true })
  }
  guarded.clear()
}

/**
 * Makes sure that a process we started, and its folder, do not outlive us, however we end. The returned function
 * cancels the guard; call it only once the process has ended.
 */
export function guardProcess(pid: number, dir: string): () => void {
  const entry = { pid, dir }
  if (guarded.size === 0) process.on('exit', endAll)
  guarded.add(entry)

  // None of our handlers runs when we are killed outright. But the kernel closes our pipes even then, so a shell
  // that waits for the end of its input can do the work. It has a session of its own: Ctrl-C must not reach it.
  const script = 'read -r _; kill -9 "$1" 2>/dev/null; rm -rf "$2"'
  const watcher = spawn('sh', ['-c', script, 'sh', String(pid), dir], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  watcher.unref()

  return () => {
    watcher.kill('SIGKILL')
    guarded.delete(entry)
    if (guarded.size === 0) process.off('exit', endAll)
  }
}
