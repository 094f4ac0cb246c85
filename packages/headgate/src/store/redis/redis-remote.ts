import { HeadgateError } from '../../errors/headgate-error.js'
import { createKeyWriter } from '../../subject/key.js'
import type { Remote } from '../remote/remote.js'
import { parseWhole } from '../remote/remote-options.js'
import type { World } from '../remote/remote-store.js'
import type { RedisConnection } from './connection.js'
import { decodeChecks, decodeRefunds, decodeRenewals } from './decode.js'
import { encodeChecks, encodeRefunds, encodeRenewals, encodeReset, type ScriptCall } from './encode.js'
import { createFirstConnection } from './first-connection.js'
import { createHeartbeat } from './heartbeat.js'
import { createInspection } from './inspect.js'
import type { RedisSettings } from './redis-options.js'
import { integerOf } from './reply.js'
import { retryReadOnly, retryTryAgain, runAsFunction, runByHash } from './script-runner.js'
import { type Script, scripts } from './scripts.gen.js'
import { slotOf } from './slot.js'
import { storeError } from './store-error.js'

/** Redis as it is without any guard. */
export interface RedisRemote extends Remote {
  ready(options?: ReadyOptions): Promise<boolean>
  /** Runs a script beside the requests, when there is a connection within `connectWithinMs`. */
  readonly callBeside: CallBeside
  /** The server's time for tests, or ''. */
  clockUs(): string
}

export type CallBeside = (
  script: Script,
  keys: string[],
  args: string[],
  connectWithinMs: number,
) => Promise<unknown>

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
  const runOnce = settings.use === 'functions' ? runAsFunction(connection) : runByHash(connection)
  const runSettled = isSplit ? retryTryAgain(runOnce, timing) : runOnce
  const run = retryReadOnly(runSettled, connection, timing)
  const clockUs = (): string => (testClockUs === null ? '' : String(testClockUs()))
  const keyOf = createKeyWriter(prefix, tenant)
  const connected = async (): Promise<void> => connection.ready?.()
  const inspection = createInspection({ connection, run, warn: settings.warn, clock })
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
  ): Promise<Read> {
    if (unanswered >= MAX_UNANSWERED) return Promise.reject(tooMany(unanswered))
    unanswered += checks
    const reply = run(script, keys, args)
    world.onSent?.(reply)
    return reply.then(
      value => {
        unanswered -= checks
        return read(value)
      },
      error => {
        unanswered -= checks
        throw storeError(error)
      },
    )
  }

  const callBeside: CallBeside = async (script, keys, args, connectWithinMs) => {
    await firstConnection?.wait(connectWithinMs)
    return call(script, { keys, args }, 1, reply => reply)
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
    ask(checks, isPeek, testTime) {
      const encoded = encodeChecks(checks, isPeek, keyOf, testTime)
      return call(encoded.script, encoded, checks.length, reply => reply)
    },
    read: decodeChecks,
    async refund(refunds) {
      const encoded = encodeRefunds(refunds, keyOf, clockUs())
      return call(scripts.refund, encoded, 1, reply => decodeRefunds(reply, refunds))
    },
    async renew(renewals) {
      const encoded = encodeRenewals(renewals, keyOf, clockUs())
      return call(scripts.renew, encoded, 1, reply => decodeRenewals(reply, renewals.length))
    },
    async reset(checks) {
      await call(scripts.reset, encodeReset(checks, keyOf, clockUs()), 1, reply => integerOf(reply, 0))
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
    callBeside,
    clockUs,
    async ready({ timeoutMs = READY_TIMEOUT_MS } = {}) {
      const withinMs = parseWhole(timeoutMs, 'timeoutMs', 0, 86_400_000)
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

/** Not the node's fault: more was asked than it can have answered by now. */
function tooMany(unanswered: number): HeadgateError {
  return new HeadgateError(
    'ERR_HEADGATE_STORE_UNAVAILABLE',
    `redis: not called: ${unanswered} checks are pending`,
  )
}
