import type { FailureMode } from '../../check/check.js'
import { invalidOption } from '../../errors/headgate-error.js'
import { wholeNumber } from '../../errors/whole-number.js'
import { type Logger, parseLogger } from '../../observe/logger.js'
import { recorderOf } from '../../observe/statistics/attached.js'
import type { Statistics } from '../../observe/statistics/statistics.js'
import type { StoreRecorder } from '../../observe/statistics/store-counts.js'
import type { BreakerOptions } from './breaker.js'
import type { RegionShare } from './region-share.js'
import type { OnStoreEvent } from './store-event.js'

/** The options of a store outside this process. */
export interface RemoteOptions {
  /** How long a call to the store may take before it is given up. Default 30. */
  readonly deadlineMs?: number
  /** The failure mode: `local` (the default), `open`, `closed`; `throw` passes the error on. */
  readonly onStoreFailure?: FailureMode | 'throw'
  /** How many failed calls in a row open a node's breaker. Default 5. */
  readonly breakerFailures?: number
  /** How long a node must also have been silent, if it gave no answer at all. Default 100. */
  readonly breakerSilenceMs?: number
  /** The longest time until an unresponsive node is tried again. Default 500, at most 30,000. */
  readonly probeAfterMs?: number
  /**
   * The most calls per second this process makes to the store; beyond it the failure mode decides. Default:
   * unbounded.
   */
  readonly maxCallsPerSecond?: number
  /** How many processes share the limits. Default: counted through the store itself. */
  readonly processes?: number
  /** How often failures are logged at most, with a count. Default five minutes. */
  readonly logEveryMs?: number
  /** Where lines are written. Default: the console. */
  readonly logger?: Logger
  /** Called with failures, breaker changes and decisions made without the store. */
  readonly onEvent?: OnStoreEvent
  /** Where calls are counted, and the decisions of limiters on this store. Default: nowhere. */
  readonly statistics?: Statistics
}

/** The parsed options of a remote store. */
export interface RemoteSettings {
  readonly deadlineMs: number
  readonly mode: FailureMode | 'throw'
  readonly breaker: BreakerOptions
  /** Null: unbounded. */
  readonly maxCallsPerSecond: number | null
  /** Null: counted through the store itself. */
  readonly processes: number | null
  readonly logEveryMs: number
  readonly logger: Logger
  readonly onEvent: OnStoreEvent | null
  readonly statistics: Statistics | null
  readonly recorder: StoreRecorder | null
  /** The most checks per call; 1 makes every question a call of its own. */
  readonly maxChecks: number
  /** How many subjects' denials are remembered; 0 disables the deny cache. */
  readonly deniedSubjects: number
  readonly share: RegionShare | null
}

const MODES: readonly unknown[] = ['local', 'open', 'closed', 'throw'] satisfies RemoteSettings['mode'][]

/** Without batches, deny cache and share; a store that has them adds its own. */
export function parseRemoteOptions(options: RemoteOptions): RemoteSettings {
  const mode = options.onStoreFailure ?? 'local'
  if (!MODES.includes(mode)) {
    throw invalidOption('onStoreFailure', "'local', 'open', 'closed' or 'throw'", mode)
  }
  const { processes } = options
  const deadlineMs = parseDeadlineMs(options.deadlineMs ?? 30)
  return {
    deadlineMs,
    mode,
    breaker: {
      failures: wholeNumber(options.breakerFailures ?? 5, 'breakerFailures', 1, 1_000),
      silenceMs: wholeNumber(options.breakerSilenceMs ?? 100, 'breakerSilenceMs', 0, 30_000),
      probeAfterMs: wholeNumber(options.probeAfterMs ?? 500, 'probeAfterMs', 10, 30_000),
      quickMs: deadlineMs / 2,
    },
    maxCallsPerSecond:
      options.maxCallsPerSecond === undefined
        ? null
        : wholeNumber(options.maxCallsPerSecond, 'maxCallsPerSecond', 1, 1_000_000_000),
    processes: processes === undefined ? null : wholeNumber(processes, 'processes', 1, 1_000_000),
    logEveryMs: wholeNumber(options.logEveryMs ?? 300_000, 'logEveryMs', 0, 86_400_000),
    logger: parseLogger(options.logger),
    onEvent: options.onEvent ?? null,
    statistics: options.statistics ?? null,
    recorder: recorderOf(options.statistics)?.store ?? null,
    maxChecks: 1,
    deniedSubjects: 0,
    share: null,
  }
}

function parseDeadlineMs(value: unknown): number {
  if (typeof value === 'number' && value >= 1 && value <= 60_000) return value
  throw invalidOption('deadlineMs', 'a number from 1 to 60000', value)
}
