import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from './free-port.ts'
import { guardProcess } from './process-guard.ts'
import { redisBinary } from './redis-binary.ts'
import { readInfo } from './redis-info.ts'
import { sendCommand } from './resp.ts'
import { waitUntil } from './wait-until.ts'

/** A redis-server of our own, in any mode. */
export interface RedisProcess {
  readonly host: '127.0.0.1'
  readonly port: number
  readonly pid: number
  readonly url: string
  /** Its working folder, with its output in `redis.log`. Gone after `stop`. */
  readonly dir: string
  /** Resolves when the process has ended, whoever ended it. */
  readonly exited: Promise<void>
  /** Sends a signal and does not wait for its effect; await `exited` after SIGKILL. */
  kill(signal: NodeJS.Signals): void
  /** Ends the process, even a frozen one, and removes its folder. Safe to call again. */
  stop(): Promise<void>
}

/** The folder and port of a server about to start. */
export interface Site {
  readonly port: number
  readonly dir: string
}

export interface CommandLine {
  readonly args: string[]
  readonly env?: Record<string, string>
}

/**
 * Starts redis-server with the command line that `prepare` returns, and resolves once it answers. `prepare` may put
 * files into the folder. Without a `port`, a free one is found.
 */
export async function launchRedis(
  prepare: (site: Site) => CommandLine | Promise<CommandLine>,
  { port }: { port?: number | undefined } = {},
): Promise<RedisProcess> {
  if (port !== undefined) return launchAt(port, prepare)
  // Between finding a port and listening on it another process may take it.
  for (let attempt = 1; ; attempt++) {
    try {
      return await launchAt(await findFreePort(), prepare)
    } catch (error) {
      if (attempt === 5 || !String(error).includes('Address already in use')) throw error
    }
  }
}

async function launchAt(
  port: number,
  prepare: (site: Site) => CommandLine | Promise<CommandLine>,
): Promise<RedisProcess> {
  const binary = await redisBinary()
  const dir = await mkdtemp(join(tmpdir(), 'headgate-redis-'))
  try {
    const { args, env } = await prepare({ port, dir })
    const log = openSync(join(dir, 'redis.log'), 'a')
    const child = spawn(binary.path, args, {
      cwd: dir,
      env: { ...process.env, ...env },
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    return await adopt(child, { port, dir })
  } catch (error) {
    await rm(dir, { recursive: true, force: true })
    throw error
  }
}

async function adopt(child: ChildProcess, { port, dir }: Site): Promise<RedisProcess> {
  const { pid } = child
  if (pid === undefined) throw new Error(`${child.spawnfile} could not be started`)
  const callGuardOff = guardProcess(pid, dir)
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  let stopped: Promise<void> | undefined

  const redis: RedisProcess = {
    host: '127.0.0.1',
    port,
    pid,
    url: `redis://127.0.0.1:${port}`,
    dir,
    exited,
    kill: signal => void child.kill(signal),
    stop: () => {
      stopped ??= (async () => {
        // Nothing is worth saving, and SIGKILL is the only signal that also ends a process held by SIGSTOP.
        child.kill('SIGKILL')
        await exited
        callGuardOff()
        await rm(dir, { recursive: true, force: true })
      })()
      return stopped
    },
  }
  try {
    await answers(redis, child)
  } catch (error) {
    const log = await readFile(join(dir, 'redis.log'), 'utf8')
    await redis.stop()
    throw new Error(`redis-server did not start on port ${port}:\n${log.slice(-2000)}`, { cause: error })
  }
  return redis
}

async function answers({ port, pid }: RedisProcess, child: ChildProcess): Promise<void> {
  let ended = false
  child.once('exit', () => {
    ended = true
  })
  await waitUntil(`redis-server ${pid} answers on port ${port}`, async () => {
    if (ended) return true
    // Another process's server could be the one that answers on this port.
    const info = await readInfo(port, 'INFO', 'server')
    return info.process_id === String(pid) && (await sendCommand(port, 'PING')) === 'PONG'
  })
  if (ended) throw new Error(`redis-server ${pid} ended at once`)
}
