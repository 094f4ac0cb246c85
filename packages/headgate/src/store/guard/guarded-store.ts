import { type Clock, systemClock, systemTimers, type Timers } from '../../clock.js'
import type { Question } from '../../engine/question.js'
import { unexpected } from '../../errors.js'
import type { Store } from '../store.js'
import { putOf, storeWith } from '../waiter.js'
import type { BreakerState } from './breaker.js'
import { withCircuit } from './circuit.js'
import type { FailureMode } from './failure.js'
import { withFallback } from './fallback.js'
import { type Beat, createFleet } from './fleet.js'
import { type GuardEvent, type OnGuardEvent, safely } from './guard-event.js'
import { withLeases } from './leases.js'
import { createLocalShare } from './local-share.js'
import { logSparingly } from './log-sparingly.js'

export interface GuardOptions {
  /** What decides when the store cannot: `local` (the default), `open`, `closed`; `throw` hands the error on. */
  readonly onStoreFailure?: FailureMode | 'throw'
  /** Failures in a row after which a node is no longer asked. Default 5. */
  readonly breakerFailures?: number
  /** The longest time until a node that stopped answering is tried again. Default 500, at most 30,000. */
  readonly probeAfterMs?: number
  /** How many processes share the limits. Left out: counted through the store itself. */
  readonly processes?: number
  /** Failures are logged once in this time, with a count. Default five minutes. */
  readonly logEveryMs?: number
  /** Told about failures, breakers and decisions made without the store. */
  readonly onEvent?: OnGuardEvent
}

/** What the guards need to know of the store they stand before. */
export interface GuardedSite {
  nodeOf(question: Question): string
  /** How long the store may take to answer. */
  readonly deadlineMs: number
  /** Replaces the connection to a node that stopped answering. */
  replaceConnection?(node: string): void
  /** Whom to tell when there is a new connection. */
  onConnected?(listener: () => void): void
  /** Counts this process in and returns how many there are, and how many nodes have forgotten that it was there. */
  heartbeat(): Promise<Beat>
  /** Whether a node may delete limits to make room. */
  isEvictionUnsafe?(): boolean
  log(line: string): void
  readonly clock?: Clock
  readonly timers?: Timers
  readonly random?: () => number
}

/** What has happened since the store was made. */
export interface StoreHealth {
  /** The breakers that are not closed, by node. */
  readonly breakers: Readonly<Record<string, BreakerState>>
  /** `rate_limit_backend_errors_total`. */
  readonly backendErrors: number
  readonly fallbackAllowed: number
  readonly fallbackDenied: number
  readonly liveProcesses: number
  /** How often a node was seen to have forgotten what it had acknowledged: a failover, or a restart, that lost writes. */
  readonly stateRewinds: number
  /** Whether Redis may delete limits when memory is short: its `maxmemory-policy` is not `noeviction`. */
  readonly evictionPolicyUnsafe: boolean
}

const HEARTBEAT_MS = 1_000

/** A store that gives every request a decision, whatever becomes of the one behind it. */
export function guardStore(
  store: Store,
  options: GuardOptions,
  site: GuardedSite,
): Store & { health(): StoreHealth } {
  const mode = options.onStoreFailure ?? 'local'
  const settings = parseGuardOptions(options)
  const clock = site.clock ?? systemClock
  const timers = site.timers ?? systemTimers
  const tally = createTally()
  const log = safely(logSparingly(site.log, settings.logEveryMs, () => clock.nowUs() / 1000))
  const observe = safely(options.onEvent ?? (() => {}))
  const onEvent: OnGuardEvent = event => {
    tally.count(event)
    log(event)
    observe(event)
  }
  const health = (liveProcesses: number): StoreHealth => ({
    ...tally.read(),
    liveProcesses,
    evictionPolicyUnsafe: site.isEvictionUnsafe?.() ?? false,
  })
  const { deadlineMs } = site
  if (mode === 'throw') {
    const leased = withLeases(store, { clock, timers, deadlineMs, liveProcesses: () => settings.processes })
    return storeWith(putOf(leased), { ...leased, health: () => health(1) })
  }

  const fleet = createFleet(site.heartbeat, HEARTBEAT_MS, timers, () => onEvent({ type: 'rewind' }))
  const live = options.processes === undefined ? fleet.live : () => options.processes as number
  const circuit = withCircuit(store, {
    failures: settings.failures,
    probeAfterMs: settings.probeAfterMs,
    quickMs: deadlineMs / 2,
    nodeOf: site.nodeOf,
    ...(site.replaceConnection && { onOpen: site.replaceConnection }),
    clock,
    timers,
    random: site.random ?? Math.random,
    onEvent,
  })
  site.onConnected?.(circuit.probeNow)
  const leased = withLeases(circuit, { clock, timers, deadlineMs, liveProcesses: live })
  const guarded = withFallback(leased, { mode, local: createLocalShare(clock, live), onEvent })
  return storeWith(putOf(guarded), {
    ...guarded,
    onStoreFailure: mode,
    health: () => health(live()),
    close() {
      fleet.stop()
      return guarded.close()
    },
  })
}

function createTally() {
  const breakers: Record<string, BreakerState> = {}
  let backendErrors = 0
  let fallbackAllowed = 0
  let fallbackDenied = 0
  let stateRewinds = 0
  return {
    count(event: GuardEvent): void {
      if (event.type === 'failure') backendErrors++
      else if (event.type === 'fallback') event.allowed ? fallbackAllowed++ : fallbackDenied++
      else if (event.type === 'rewind') stateRewinds++
      else if (event.state === 'closed') delete breakers[event.node]
      else breakers[event.node] = event.state
    },
    read: () => ({
      breakers: { ...breakers },
      backendErrors,
      fallbackAllowed,
      fallbackDenied,
      stateRewinds,
    }),
  }
}

function parseGuardOptions(options: GuardOptions) {
  const mode = options.onStoreFailure
  if (mode !== undefined && !['local', 'open', 'closed', 'throw'].includes(mode)) {
    throw unexpected(
      'ERR_HEADGATE_INVALID_OPTION',
      'onStoreFailure',
      "'local', 'open', 'closed' or 'throw'",
      mode,
    )
  }
  return {
    failures: parseNumber(options.breakerFailures ?? 5, 'breakerFailures', 1, 1_000),
    probeAfterMs: parseNumber(options.probeAfterMs ?? 500, 'probeAfterMs', 10, 30_000),
    logEveryMs: parseNumber(options.logEveryMs ?? 300_000, 'logEveryMs', 0, 86_400_000),
    processes: parseNumber(options.processes ?? 1, 'processes', 1, 1_000_000),
  }
}

function parseNumber(value: unknown, field: string, least: number, most: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', field, `a whole number from ${least} to ${most}`, value)
}
