import type { PendingCheck } from '../../check/pending-check.js'
import { HeadgateError } from '../../errors/headgate-error.js'
import { wholeNumber } from '../../errors/whole-number.js'
import { createKeyWriter } from '../../subject/key.js'
import type { Clock, Timers } from '../../time/clock.js'
import type { Remote } from '../remote/remote.js'
import type { World } from '../remote/remote-store.js'
import type { RedisConnection } from './connection.js'
import {
  type CheckErrors,
  decodeChecks,
  decodeCredit,
  decodeRefunds,
  decodeRenewals,
  type ServerClock,
} from './decode.js'
import {
  type ChecksCall,
  encodeChecks,
  encodeCredit,
  encodeRefunds,
  encodeRenewals,
  encodeReset,
  type ScriptCall,
} from './encode.js'
import { createFirstConnection } from './first-connection.js'
import { createHeartbeat } from './heartbeat.js'
import { createInspection } from './inspect.js'
import type { RedisSettings } from './redis-options.js'
import { integerOf } from './reply.js'
import { type RunScript, ScriptRunner } from './script-runner.js'
import { type Script, scripts } from './scripts.gen.js'
import { slotOf } from './slot.js'
import { storeError } from './store-error.js'
import { StraightLines } from './straight-line.js'

/** Redis as it is without any guard. */
export interface RedisRemote extends Remote {
  ready(options?: ReadyOptions): Promise<boolean>
  readonly beside: Beside
}

/** How Redis is asked beside the requests, which never wait for it. */
export interface Beside {
  readonly prefix: string
  readonly tenant: string
  readonly service: string
  /** Runs a script, when there is a connection within `connectWithinMs`. */
  readonly call: (script: Script, keys: string[], args: string[], connectWithinMs: number) => Promise<unknown>
  readonly info: (() => Promise<string>) | undefined
  /** The server's time for tests, or ''. */
  readonly clockUs: () => string
  readonly timers: Timers
}

export interface ReadyOptions {
  /** How long to wait at most. Default 10,000. */
  readonly timeoutMs?: number
}

/** The most unanswered checks; beyond it a frozen server would cost memory. */
const MAX_UNANSWERED = 10_000
const READY_TIMEOUT_MS = 10_000

/** Sends calls to Redis: encoded, run as one script, decoded. */
export function createRedisRemote(
  connection: RedisConnection,
  settings: RedisSettings,
  world: World,
): RedisRemote {
  const { prefix, tenant, service, deadlineMs, testClockUs } = settings
  const { clock, timers } = world
  const isSplit = connection.cluster === true
  const timing = { deadlineMs, clock, timers }
  const useFunctions = settings.use === 'functions'
  const runner = new ScriptRunner({ connection, useFunctions, ...timing })
  const run: RunScript = (script, keys, args) => runner.run(script, keys, args, asItIs, rethrow)
  const lines = new StraightLines(testClockUs !== null, !isSplit, useFunctions ? null : world.sha1)
  const serverClock = new LearntClock(clock)
  connection.onConnected?.(() => serverClock.forget())
  const clockUs = (): string => (testClockUs === null ? '' : String(testClockUs()))
  const keyOf = createKeyWriter(prefix, tenant)
  const connected = async (): Promise<void> => connection.ready?.()
  const inspection = createInspection({ connection, run, prefix, warn: settings.warn, clock })
  const firstConnection = connection.onDemand
    ? undefined
    : createFirstConnection({
        ...timing,
        ready: connected,
        problem: () => connection.problem?.(),
        connectTimeoutMs: settings.connectTimeoutMs,
      })
  let unanswered = 0
  let onClose = (): void => {}
  const closed = new Promise<false>(resolve => {
    onClose = () => resolve(false)
  })

  /** Runs a script for `checks` checks and decodes its reply; its failure is the store's. */
  function call<Read>(
    script: Script,
    { keys, args }: ScriptCall,
    checks: number,
    read: (reply: unknown) => Read,
    argsAt?: (serverUs: number) => string[],
  ): Promise<Read> {
    if (unanswered >= MAX_UNANSWERED) return Promise.reject(tooMany(unanswered))
    unanswered += checks
    const reply = runner.run(
      script,
      keys,
      args,
      value => {
        unanswered -= checks
        return read(value)
      },
      error => {
        unanswered -= checks
        throw storeError(error)
      },
      argsAt,
    )
    world.onSent?.(reply)
    return reply
  }

  /** Sends the calls of one turn together. One that fails fails its own checks, unless all do. */
  async function callAll(
    calls: readonly ChecksCall[],
    encode: (checks: readonly PendingCheck[]) => readonly ChecksCall[],
  ): Promise<Reply> {
    const replies = await Promise.allSettled(
      calls.map(each =>
        call(
          each.script,
          each,
          each.checks.length,
          asItIs,
          again(() => encode(each.checks)[0] as ChecksCall),
        ),
      ),
    )
    const failed = replies.find(reply => reply.status === 'rejected')
    if (failed !== undefined && replies.every(reply => reply.status === 'rejected')) throw failed.reason
    return { calls, replies }
  }

  /** The server's time as well as it is known: by it the periods are told among which the server's own clock picks. */
  const serverUs = (): number => (testClockUs === null ? serverClock.nowUs() : testClockUs())

  /** The arguments of a call that is encoded again, now that the server's time is known. */
  function again(encode: () => ScriptCall): (learntUs: number) => string[] {
    return learntUs => {
      serverClock.learn(learntUs)
      return encode().args
    }
  }

  /** Makes a call other than a check. */
  function change<Read>(
    script: Script,
    encode: () => ScriptCall,
    read: (reply: unknown) => Read,
  ): Promise<Read> {
    return call(script, encode(), 1, read, again(encode))
  }

  const callBeside: Beside['call'] = async (script, keys, args, connectWithinMs) => {
    await firstConnection?.wait(connectWithinMs)
    return call(script, { keys, args }, 1, asItIs)
  }

  const look = (): Promise<void> => connected().then(inspection.lookOnce)
  const looked = connection.onDemand ? null : look()
  looked?.catch(() => {})

  return {
    source: 'redis',
    isSplit,
    onDemand: connection.onDemand === true,
    ...(firstConnection && { firstConnection }),
    ...(testClockUs && { testClock: { nowUs: testClockUs, unixMs: clock.unixMs } }),
    nameOf: node => `Redis ${node || (connection.address?.() ?? '')}`.trimEnd(),
    testTime: clockUs,
    batchKeyOf: check => (isSplit && check.plan.limits.length > 0 ? slotOf(keyOf(check.checkOf(0))) : 0),
    nodeOf: state => (isSplit ? (connection.nodeOf?.(keyOf(state)) ?? '') : ''),
    ask(checks, isPeek, testTime): Promise<Reply> {
      const encode = (some: readonly PendingCheck[]): readonly ChecksCall[] => {
        const nowUs = testTime === '' ? serverClock.nowUs() : Number(testTime)
        return encodeChecks(some, isPeek, lines, keyOf, testTime, serverClock.isKnown(), nowUs)
      }
      const calls = encode(checks)
      if (calls.length > 1) return callAll(calls, encode)
      const only = calls[0] as ChecksCall
      return call(
        only.script,
        only,
        checks.length,
        value => ({ calls, replies: [{ status: 'fulfilled', value }] }),
        again(() => encode(checks)[0] as ChecksCall),
      )
    },
    read(reply, checks) {
      const { calls, replies } = reply as Reply
      const errors: CheckErrors = new Map()
      for (const [index, each] of calls.entries()) {
        const result = replies[index] as PromiseSettledResult<unknown>
        if (result.status === 'fulfilled') decodeChecks(result.value, each, serverClock, errors)
        else for (const check of each.checks) errors.set(check, result.reason)
      }
      return errors.size === 0 ? null : checks.map(check => errors.get(check) ?? null)
    },
    forgetPlans: () => lines.forget(),
    async refund(refunds) {
      const encode = (): ScriptCall => encodeRefunds(refunds, keyOf, clockUs(), serverUs())
      return change(scripts.refund, encode, reply => decodeRefunds(reply, refunds))
    },
    async renew(renewals) {
      const encode = (): ScriptCall => encodeRenewals(renewals, keyOf, clockUs(), serverUs())
      return change(scripts.renew, encode, reply => decodeRenewals(reply, renewals.length))
    },
    async credit(credit) {
      const encode = (): ScriptCall => encodeCredit(credit, keyOf, clockUs(), serverUs())
      return change(scripts.credit, encode, reply => decodeCredit(reply, credit))
    },
    async reset(checks) {
      const encode = (): ScriptCall => encodeReset(checks, keyOf, clockUs(), serverUs())
      await change(scripts.reset, encode, reply => integerOf(reply, 0))
    },
    heartbeat: createHeartbeat({
      prefix,
      service,
      member: () => world.random().toString(36).slice(2),
      nodeOf: key => connection.nodeOf?.(key) ?? '',
      run(key, args) {
        inspection.lookAgain()
        return callBeside(scripts.heartbeat, [key], [clockUs(), ...args], deadlineMs)
      },
    }),
    beside: {
      prefix,
      tenant,
      service,
      call: callBeside,
      clockUs,
      timers,
      info: connection.info === undefined ? undefined : async () => (await connection.info?.()) ?? '',
    },
    async ready({ timeoutMs = READY_TIMEOUT_MS } = {}) {
      const withinMs = wholeNumber(timeoutMs, 'timeoutMs', 0, 86_400_000)
      let cancel = (): void => {}
      const late = new Promise<false>(resolve => {
        cancel = timers.after(withinMs, () => resolve(false))
      })
      const isReady = (looked ?? look()).then(
        () => true,
        () => false,
      )
      return Promise.race([isReady, late, closed]).finally(cancel)
    },
    isEvictionUnsafe: inspection.isEvictionUnsafe,
    onConnected: listener => connection.onConnected?.(listener),
    replaceConnection: node => connection.replace?.(node),
    async close() {
      firstConnection?.close()
      onClose()
      await connection.close?.()
    },
  }
}

function asItIs(reply: unknown): unknown {
  return reply
}

function rethrow(error: unknown): never {
  throw error
}

/** The replies to the calls of one batch. */
interface Reply {
  readonly calls: readonly ChecksCall[]
  readonly replies: readonly PromiseSettledResult<unknown>[]
}

/** For how long the server's clock is taken to be what a reply said. */
const CLOCK_KNOWN_US = 1_000_000

/**
 * The server's clock as a reply of the last second told it. No decision depends on it: it only tells in which of ten windows a
 * charge was made whose reply had no room for that, and which periods of a quota the server is told to pick from. While it is
 * not known, such replies are not asked for.
 */
class LearntClock implements ServerClock {
  #offsetUs = 0
  #learntAtUs = Number.NEGATIVE_INFINITY
  /** How far the wall clock was from the other then: they part when this machine sleeps. */
  #wallOffsetUs = 0

  constructor(private readonly clock: Clock) {}

  isKnown(): boolean {
    const nowUs = this.clock.nowUs()
    const isLate = nowUs - this.#learntAtUs >= CLOCK_KNOWN_US
    return !isLate && Math.abs(this.#wallUs(nowUs) - this.#wallOffsetUs) < CLOCK_KNOWN_US
  }

  nowUs(): number {
    return this.clock.nowUs() + this.#offsetUs
  }

  learn(serverUs: number): void {
    const nowUs = this.clock.nowUs()
    this.#offsetUs = serverUs - nowUs
    this.#learntAtUs = nowUs
    this.#wallOffsetUs = this.#wallUs(nowUs)
  }

  /** Another server may answer from now on. */
  forget(): void {
    this.#learntAtUs = Number.NEGATIVE_INFINITY
  }

  #wallUs(nowUs: number): number {
    return this.clock.unixMs() * 1_000 - nowUs
  }
}

/** Not the node's fault: more was asked than it can have answered by now. */
function tooMany(unanswered: number): HeadgateError {
  return new HeadgateError(
    'ERR_HEADGATE_STORE_UNAVAILABLE',
    `redis: not called: ${unanswered} checks are pending`,
  )
}
