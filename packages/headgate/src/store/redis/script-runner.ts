/**
 * Runs scripts on Redis. A script is sent again only when the server's answer proves that nothing ran: it does not know the
 * script, the slot is moving, or the node has become a replica. After any other failure it may have run.
 */
import { HeadgateError } from '../../errors/headgate-error.js'
import type { Clock, Timers } from '../../time/clock.js'
import type { RedisConnection } from './connection.js'
import { functionLibrary, type Script, scripts } from './scripts.gen.js'

// The server's words, possibly wrapped by a client: an HTTP client that batches prefixes them, GLIDE names the
// error. Either way it is the server's answer, and says that nothing ran.
const NO_SCRIPT = /^(?:Command failed: )?NOSCRIPT |NoScriptError: /
const NO_FUNCTION = /^(?:Command failed: )?ERR Function not found|ResponseError: Function not found/

/** Runs a script with its keys and arguments and returns the raw reply. */
export type RunScript = (script: Script, keys: string[], args: string[]) => Promise<unknown>

/** By hash; with the text only when the server says it does not know the hash. */
export function runByHash(connection: RedisConnection): RunScript {
  return async (script, keys, args) => {
    try {
      return await connection.evalsha(script.sha, keys, args)
    } catch (error) {
      if (!says(error, NO_SCRIPT)) throw error
      return connection.eval(script.text, keys, args)
    }
  }
}

/** The functions can be flushed again between loading and calling them; each time that proves that nothing ran. */
const MAX_LOADS = 10

/** Runs as a Redis Function; the library is loaded only if the server does not know the function. */
export function runAsFunction(connection: RedisConnection): RunScript {
  const { fcall, loadFunctions } = connection
  if (fcall === undefined || loadFunctions === undefined) {
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
      field: 'use',
      expected: "'scripts' for a client without fcall and loadFunctions",
      got: "'functions'",
    })
  }
  let loading: Promise<unknown> | null = null
  return async (script, keys, args) => {
    for (let loads = 0; ; loads++) {
      try {
        return await fcall(script.functionName, keys, args)
      } catch (error) {
        if (loads === MAX_LOADS || !says(error, NO_FUNCTION)) throw error
      }
      loading ??= loadFunctions(functionLibraryCode()).finally(() => {
        loading = null
      })
      await loading
    }
  }
}

/**
 * Returns the scripts as a library of Redis Functions, for `FUNCTION LOAD` by an operator or by the store itself.
 */
export function functionLibraryCode(): string {
  const functions = Object.values(scripts).map(
    ({ functionName, text }) =>
      `redis.register_function('${functionName}', function(KEYS, ARGV)\n${text}\nend)\n`,
  )
  return `#!lua name=${functionLibrary}\n${functions.join('')}`
}

function says(error: unknown, reply: RegExp): boolean {
  return error instanceof Error && reply.test(error.message)
}

/** A connection younger than this that says it leads to a replica is not replaced for the sake of one call. */
export const YOUNG_MS = 1_000

/** An error that a script hands on gets Redis' own `ERR` before it. */
const READ_ONLY = /^(?:ERR )?READONLY /

/** The error of a script that was to write on a replica. It comes before anything is written: nothing ran. */
export function isReadOnly(error: unknown): boolean {
  return error instanceof Error && READ_ONLY.test(error.message)
}

interface Timing {
  readonly deadlineMs: number
  readonly clock: Clock
  readonly timers: Timers
}

/**
 * Sends a call once more when it reached a primary that has become a replica, as after a failover behind one address,
 * as soon as the new connection is there and only within its deadline: what was given up by then is not sent. The
 * connection replaces itself when it hears the reply.
 */
export function retryReadOnly(
  run: RunScript,
  connection: RedisConnection,
  { deadlineMs, clock, timers }: Timing,
): RunScript {
  if (connection.onConnected === undefined) return run
  const waiting = new Set<() => void>()
  const nowMs = (): number => clock.nowUs() / 1000
  let connectedAtMs = Number.NEGATIVE_INFINITY
  connection.onConnected(() => {
    connectedAtMs = nowMs()
    for (const go of waiting) go()
    waiting.clear()
  })

  /** Whether there is another connection than the one that was used, in time. */
  function reconnected(sentAtMs: number): Promise<boolean> {
    if (connectedAtMs > sentAtMs) return Promise.resolve(true)
    if (sentAtMs - connectedAtMs < YOUNG_MS) return Promise.resolve(false)
    return new Promise(resolve => {
      const go = (): void => {
        cancel()
        resolve(true)
      }
      const cancel = timers.after(Math.max(1, sentAtMs + deadlineMs - nowMs()), () => {
        waiting.delete(go)
        resolve(false)
      })
      waiting.add(go)
    })
  }

  return async (script, keys, args) => {
    const sentAtMs = nowMs()
    try {
      return await run(script, keys, args)
    } catch (error) {
      if (!isReadOnly(error) || !(await reconnected(sentAtMs))) throw error
      if (nowMs() - sentAtMs >= deadlineMs) throw error
    }
    return run(script, keys, args)
  }
}

/** Between two attempts: a slot has usually moved within milliseconds. */
export const TRYAGAIN_PAUSE_MS = 3

/**
 * Sends again what a cluster rejected with TRYAGAIN, as long as the call may take: while a slot moves, a script whose keys
 * are not all on one side is not run at all.
 */
export function retryTryAgain(run: RunScript, { deadlineMs, clock, timers }: Timing): RunScript {
  const pause = (): Promise<void> => new Promise(resolve => void timers.after(TRYAGAIN_PAUSE_MS, resolve))
  return async (script, keys, args) => {
    const giveUpAtUs = clock.nowUs() + (deadlineMs - TRYAGAIN_PAUSE_MS) * 1000
    for (;;) {
      try {
        return await run(script, keys, args)
      } catch (error) {
        const rejected = error instanceof Error && error.message.startsWith('TRYAGAIN')
        if (!rejected || clock.nowUs() >= giveUpAtUs) throw error
      }
      await pause()
    }
  }
}
