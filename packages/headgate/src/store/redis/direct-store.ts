import { type Clock, systemClock, systemTimers, type Timers } from '../../clock.js'
import type { Answer, Check, Question, Refund } from '../../engine/question.js'
import { type HeadgateError, unexpected } from '../../errors.js'
import { redisKey } from '../../subject/key.js'
import type { ControlStore } from '../control-store.js'
import { firstCheckOf } from '../first-check.js'
import { parseDeadlineMs, withDeadline } from '../guard/deadline.js'
import type { Beat } from '../guard/fleet.js'
import type { Store } from '../store.js'
import { type How, putOf, storeWith, type Waiter } from '../waiter.js'
import { createBatch } from './batch.js'
import { connectionOf, type RedisClient } from './connection-of.js'
import { decodeAnswers, decodeRefunds } from './decode.js'
import { encodeQuestions, encodeRefunds, encodeReset } from './encode.js'
import { createHeartbeat } from './heartbeat.js'
import { inspectServer, type StoreWarning } from './inspect.js'
import { retryReadOnly } from './read-only.js'
import { createReadyGate } from './ready-gate.js'
import { redisControl } from './redis-control.js'
import { runAsFunction, runByHash } from './script-runner.js'
import { type Script, scripts } from './scripts.gen.js'
import { type Share, withShare } from './share.js'
import { slotOf } from './slot.js'
import { splitBySubject } from './split-by-subject.js'
import { storeError } from './store-error.js'

export interface DirectStoreOptions {
  /** First part of every key. Default `ratelimit`. */
  readonly prefix?: string
  /** Keeps the limits of several products on one Redis apart. */
  readonly tenant?: string
  /** How long a decision may take before it is given up. Default 30. */
  readonly deadlineMs?: number
  /** Run as scripts (`EVALSHA`, the default) or as Redis Functions (`FCALL`, Redis 7). */
  readonly use?: 'scripts' | 'functions'
  /** Use the client itself instead of a duplicate with safe options. */
  readonly shared?: boolean
  /** This store's part of every limit, where several regions have a Redis each. */
  readonly share?: Share
  /**
   * Send checks made in the same turn of the event loop as one call. Default true. `maxChecks` (default 64) bounds a
   * call, and with it the time for which Redis answers nobody else.
   */
  readonly batch?: boolean | { readonly maxChecks?: number }
  /** Told about an unsafe set-up. Default: `console.warn`. */
  readonly onWarning?: (warning: StoreWarning) => void
  /** The server's time in microseconds, for tests only. Left out: the server's own clock. */
  readonly testClockUs?: () => number
}

/** Where the store reads the time and waits: in this process, or in a simulation. */
export interface Time {
  readonly clock: Clock
  readonly timers: Timers
}

/** A store that answers or rejects, and what its guards need to know of it. */
export interface DirectStore extends Store {
  readonly control: ControlStore
  /** Settles when it is connected and has looked at the server. */
  ready(): Promise<void>
  /** Makes what counts a process in on every node, says how many there are, and notices nodes that lost their memory. */
  heartbeatOf(member: string): () => Promise<Beat>
  /** Whether the server may delete limits to make room, as far as it has been looked at. */
  isEvictionUnsafe(): boolean
  readonly deadlineMs: number
  /** Whom to tell when there is a new connection. */
  onConnected(listener: () => void): void
  /** The node that answers a question; one name for all where there is only one. */
  nodeOf(question: Question): string
  /** Replaces the connection to a node that stopped answering. */
  replaceConnection(node: string): void
}

/** Calls that may be unanswered at once; beyond it a frozen server would be paid for in memory. */
const MAX_UNANSWERED = 10_000
const INSPECT_EVERY_US = 60_000_000
const DEFAULTS = { prefix: 'ratelimit', tenant: '', maxChecks: 64 } as const
const PREFIX = /^[A-Za-z0-9_.-]{1,32}$/

/**
 * Limits shared by every process that uses the same Redis, decided there by one atomic script, on the server's clock.
 * A client handed in is duplicated with options under which no lost reply is ever charged twice.
 */
export function directRedisStore(
  client: RedisClient,
  options: DirectStoreOptions = {},
  time: Time = { clock: systemClock, timers: systemTimers },
): DirectStore {
  const settings = parseOptions(options)
  const warn =
    options.onWarning ?? (warning => console.warn(`[headgate] ${warning.code}: ${warning.message}`))
  const connection = connectionOf(client, settings.shared, warn)
  const runOnce = settings.use === 'functions' ? runAsFunction(connection) : runByHash(connection)
  const run = retryReadOnly(runOnce, connection, { ...time, deadlineMs: settings.deadlineMs })
  const clockUs = (): string => (options.testClockUs === undefined ? '' : String(options.testClockUs()))
  const keyOf = ({ subject, scope, name }: Check): string =>
    redisKey({ prefix: settings.prefix, tenant: settings.tenant, subject, scope, name })
  const connected = async (): Promise<void> => connection.ready?.()
  const gate = createReadyGate(connected, () => connection.problem?.(), time.timers)
  let inspected: Promise<void> | null = null
  let inspectedAtUs = 0
  let evictionUnsafe = false
  let unanswered = 0

  async function ready(): Promise<void> {
    await connected()
    inspected ??= inspect()
    await inspected
  }

  const warned = new Set<string>()
  async function inspect(): Promise<void> {
    inspectedAtUs = time.clock.nowUs()
    const found = await inspectServer(connection, run, warning => {
      if (!warned.has(warning.code)) warn(warning)
      warned.add(warning.code)
    })
    evictionUnsafe = found.evictionUnsafe
  }

  /** The set-up of a server can be changed while it runs, and another may take its place. */
  function inspectAgain(): void {
    if (time.clock.nowUs() - inspectedAtUs >= INSPECT_EVERY_US) inspect().catch(() => {})
  }

  function tooMany(): HeadgateError {
    return storeError(new Error(`${unanswered} calls are unanswered`))
  }

  /** Counts `questions` as unanswered while `work` is under way; a failure of it is the store's. */
  async function counted<T>(questions: number, work: () => Promise<T>): Promise<T> {
    unanswered += questions
    try {
      return await work()
    } catch (error) {
      throw storeError(error)
    } finally {
      unanswered -= questions
    }
  }

  async function call(
    script: Script,
    keys: string[],
    args: string[],
    connectWithinMs = settings.deadlineMs,
  ): Promise<unknown> {
    if (unanswered >= MAX_UNANSWERED) throw tooMany()
    const wait = gate.pass(connectWithinMs)
    return counted(1, async () => {
      if (wait !== undefined) await wait
      // What was asked before leaves before.
      batch.flush()
      return run(script, keys, args)
    })
  }

  const batch = createBatch({
    maxChecks: settings.maxChecks,
    timers: time.timers,
    laneOf(question) {
      const check = connection.cluster ? firstCheckOf(question) : undefined
      return check === undefined ? 0 : slotOf(keyOf(check))
    },
    async send({ how, clockUs }, questions) {
      const { keys, args } = encodeQuestions(questions, keyOf, clockUs)
      const reply = await counted(questions.length, () => run(scripts[how], keys, args))
      return decodeAnswers(reply, questions)
    },
  })

  function put(how: How, question: Question, waiter: Waiter<Answer>): null {
    if (unanswered >= MAX_UNANSWERED) {
      waiter.failed(tooMany())
      return null
    }
    // From now, not from when the batch leaves: a question given up at the gate is never sent.
    const wait = gate.pass(settings.deadlineMs)
    if (wait === undefined) batch.ask(how, clockUs(), question, waiter)
    else putLater(wait, how, question, waiter)
    return null
  }

  function putLater(wait: Promise<void>, how: How, question: Question, waiter: Waiter<Answer>): void {
    unanswered++
    const askedAtUs = clockUs()
    wait.then(
      () => {
        unanswered--
        batch.ask(how, askedAtUs, question, waiter)
      },
      error => {
        unanswered--
        waiter.failed(storeError(error))
      },
    )
  }

  const direct = storeWith(put, {
    source: 'redis',
    async refund(refunds: readonly Refund[]) {
      const { keys, args } = encodeRefunds(refunds, keyOf, clockUs())
      return decodeRefunds(await call(scripts.refund, keys, args), refunds.length)
    },
    async reset(checks: readonly Check[]) {
      const { keys, args } = encodeReset(checks, keyOf, clockUs())
      await call(scripts.reset, keys, args)
    },
    async close() {
      await connection.close?.()
    },
  } as const)

  const inTime = (store: Store): Store =>
    withDeadline(store, {
      deadlineMs: settings.deadlineMs,
      ...time,
      // The gate waits as long as the deadline: whichever is first, the caller hears that nobody could be asked.
      problem() {
        const problem = gate.problem(settings.deadlineMs)
        return problem === null ? null : storeError(problem)
      },
    })
  // With a deadline for each part too: when one slot does not answer, the charges of the others are given back.
  const split = connection.cluster ? splitBySubject(inTime(direct)) : direct
  const shared = options.share === undefined ? split : withShare(split, options.share)
  ready().catch(() => {})
  const { prefix, tenant } = settings
  const store = inTime(shared)
  return storeWith(putOf(store), {
    ...store,
    control: redisControl({ prefix, tenant, call, clockUs, timers: time.timers }),
    ready,
    heartbeatOf: (member: string) =>
      createHeartbeat({
        prefix: settings.prefix,
        member,
        nodeOf: key => connection.nodeOf?.(key) ?? '',
        run(key, args) {
          inspectAgain()
          return call(scripts.heartbeat, [key], [clockUs(), ...args])
        },
      }),
    isEvictionUnsafe: () => evictionUnsafe,
    deadlineMs: settings.deadlineMs,
    onConnected: (listener: () => void) => connection.onConnected?.(listener),
    nodeOf(question: Question) {
      const check = connection.cluster ? firstCheckOf(question) : undefined
      return check === undefined ? '' : (connection.nodeOf?.(keyOf(check)) ?? '')
    },
    replaceConnection: (node: string) => connection.replace?.(node),
  })
}

function parseOptions(options: DirectStoreOptions) {
  const prefix = options.prefix ?? DEFAULTS.prefix
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'prefix', 'up to 32 letters, digits, _ . or -', prefix)
  }
  const tenant = options.tenant ?? DEFAULTS.tenant
  if (typeof tenant !== 'string')
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'tenant', 'a string', tenant)
  const deadlineMs = parseDeadlineMs(options.deadlineMs)
  const use = options.use ?? 'scripts'
  if (use !== 'scripts' && use !== 'functions')
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'use', "'scripts' or 'functions'", use)
  return {
    prefix,
    tenant,
    deadlineMs,
    use,
    shared: options.shared === true,
    maxChecks: parseBatch(options.batch),
  }
}

/** Checks in a call at most: one means that every question is a call of its own. */
function parseBatch(batch: unknown): number {
  if (batch === undefined || batch === true) return DEFAULTS.maxChecks
  if (batch === false) return 1
  if (typeof batch !== 'object' || batch === null) {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'batch', 'true, false or { maxChecks }', batch)
  }
  const { maxChecks = DEFAULTS.maxChecks } = batch as { maxChecks?: unknown }
  if (typeof maxChecks === 'number' && Number.isInteger(maxChecks) && maxChecks >= 1 && maxChecks <= 1_000) {
    return maxChecks
  }
  throw unexpected(
    'ERR_HEADGATE_INVALID_OPTION',
    'batch.maxChecks',
    'a whole number from 1 to 1000',
    maxChecks,
  )
}
