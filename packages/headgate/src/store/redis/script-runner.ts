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

interface RunnerOptions {
  readonly connection: RedisConnection
  /** As Redis Functions instead of scripts. */
  readonly useFunctions: boolean
  readonly deadlineMs: number
  readonly clock: Clock
  readonly timers: Timers
}

/** The functions can be flushed again between loading and calling them; each time that proves that nothing ran. */
const MAX_LOADS = 10
/** Between two attempts while a slot moves, which usually takes milliseconds. */
export const TRYAGAIN_PAUSE_MS = 3
/** A connection younger than this that says it leads to a replica is not replaced for the sake of one call. */
export const YOUNG_MS = 1_000

export class ScriptRunner {
  readonly #options: RunnerOptions
  readonly #connection: RedisConnection
  readonly #waiting = new Set<() => void>()
  /** The scripts that were sent in full, by node, over the connection in use. */
  readonly #inFull = new Set<string>()
  #connectedAtMs = Number.NEGATIVE_INFINITY
  #loading: Promise<unknown> | null = null

  constructor(options: RunnerOptions) {
    const { connection, useFunctions } = options
    if (useFunctions && (connection.fcall === undefined || connection.loadFunctions === undefined)) {
      throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
        field: 'use',
        expected: "'scripts' for a client without fcall and loadFunctions",
        got: "'functions'",
      })
    }
    this.#options = options
    this.#connection = connection
    connection.onConnected?.(() => {
      this.#connectedAtMs = this.#nowMs()
      this.#inFull.clear()
      for (const go of this.#waiting) go()
      this.#waiting.clear()
    })
  }

  /** Runs a script and hands its reply to `read`, or its error to `fail`, which throws. One promise for the common case. */
  run<Read>(
    script: Script,
    keys: string[],
    args: string[],
    read: (reply: unknown) => Read,
    fail: (error: unknown) => never,
    /** The arguments as they are at the time of the server, which is in another period than this process thought. */
    argsAt?: (serverUs: number) => string[],
  ): Promise<Read> {
    const sentAtMs = this.#nowMs()
    return this.#send(script, keys, args).then(read, error =>
      this.#again(error, script, keys, args, sentAtMs, argsAt).then(read, fail),
    )
  }

  #nowMs(): number {
    return this.#options.clock.nowUs() / 1_000
  }

  #send({ sha, text, functionName }: Script, keys: string[], args: string[]): Promise<unknown> {
    const connection = this.#connection
    if (this.#options.useFunctions)
      return (connection.fcall as NonNullable<RedisConnection['fcall']>)(functionName, keys, args)
    return this.#isKnown(sha, keys) ? connection.evalsha(sha, keys, args) : connection.eval(text, keys, args)
  }

  /**
   * Whether the server should know a script. The first time over a connection it is sent in full: to hear that it is missing
   * would be a second round trip, for which the deadline may leave no time. Over HTTP, where nothing is known of the
   * server, others have most likely sent it.
   */
  #isKnown(sha: string, keys: string[]): boolean {
    const { cluster, onDemand, nodeOf } = this.#connection
    if (onDemand) return true
    const place = cluster ? `${nodeOf?.(keys[0] ?? '') ?? ''} ${sha}` : sha
    if (this.#inFull.has(place)) return true
    this.#inFull.add(place)
    return false
  }

  /** Sends it again for as long as the server's answers prove that nothing ran. */
  async #again(
    first: unknown,
    script: Script,
    keys: string[],
    firstArgs: string[],
    sentAtMs: number,
    argsAt: ((serverUs: number) => string[]) | undefined,
  ): Promise<unknown> {
    let error = first
    let args = firstArgs
    let retriedReadOnly = false
    let retriedPeriod = false
    for (let loads = 0; ; ) {
      try {
        if (says(error, NO_SCRIPT)) return await this.#connection.eval(script.text, keys, args)
        if (says(error, NO_FUNCTION) && loads++ < MAX_LOADS) await this.#loadFunctions()
        else if (this.#mayTryAgain(error, sentAtMs)) await this.#pause()
        else if (!retriedReadOnly && isReadOnly(error) && (await this.#reconnected(sentAtMs)))
          retriedReadOnly = true
        else if (!retriedPeriod && argsAt !== undefined && otherPeriodUs(error) !== null) {
          retriedPeriod = true
          args = argsAt(otherPeriodUs(error) as number)
        } else throw error
      } catch (cause) {
        if (cause === error) throw error
        error = cause
        continue
      }
      try {
        return await this.#send(script, keys, args)
      } catch (next) {
        error = next
      }
    }
  }

  #loadFunctions(): Promise<unknown> {
    const { loadFunctions } = this.#connection
    this.#loading ??= (loadFunctions as NonNullable<typeof loadFunctions>)(functionLibraryCode()).finally(
      () => {
        this.#loading = null
      },
    )
    return this.#loading
  }

  /** While a slot moves, a script whose keys are not all on one side is not run at all. */
  #mayTryAgain(error: unknown, sentAtMs: number): boolean {
    const isRefused = error instanceof Error && error.message.startsWith('TRYAGAIN')
    return isRefused && this.#nowMs() < sentAtMs + this.#options.deadlineMs - TRYAGAIN_PAUSE_MS
  }

  #pause(): Promise<void> {
    return new Promise(resolve => void this.#options.timers.after(TRYAGAIN_PAUSE_MS, resolve))
  }

  /**
   * After a primary has become a replica, as in a failover behind one address, the connection replaces itself when it hears that.
   * Resolves to whether there is another connection than the one that was used, in time.
   */
  async #reconnected(sentAtMs: number): Promise<boolean> {
    if (this.#connection.onConnected === undefined) return false
    const { deadlineMs, timers } = this.#options
    if (this.#connectedAtMs <= sentAtMs) {
      if (sentAtMs - this.#connectedAtMs < YOUNG_MS) return false
      const isThere = await new Promise<boolean>(resolve => {
        const go = (): void => {
          cancel()
          resolve(true)
        }
        const cancel = timers.after(Math.max(1, sentAtMs + deadlineMs - this.#nowMs()), () => {
          this.#waiting.delete(go)
          resolve(false)
        })
        this.#waiting.add(go)
      })
      if (!isThere) return false
    }
    return this.#nowMs() - sentAtMs < deadlineMs
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

/** The time of a server that a script has found to be in none of the periods it was told; null for any other error. */
function otherPeriodUs(error: unknown): number | null {
  const said = error instanceof Error ? /HEADGATE_PERIOD (\d{1,16})/.exec(error.message) : null
  return said === null ? null : Number(said[1])
}

function says(error: unknown, reply: RegExp): boolean {
  return error instanceof Error && reply.test(error.message)
}

/** An error that a script hands on gets Redis' own `ERR` before it. */
const READ_ONLY = /^(?:ERR )?READONLY /

/** The error of a script that was to write on a replica. It comes before anything is written: nothing ran. */
export function isReadOnly(error: unknown): boolean {
  return error instanceof Error && READ_ONLY.test(error.message)
}
