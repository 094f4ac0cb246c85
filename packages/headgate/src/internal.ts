/** For `@headgate/server` alone: whatever it needs of the inside. Not for users: any release may change it. */
export type { Passed, Rejected } from './adapters/enforce.js'
export { drain, leavingSignal, MAX_DRAINED_BYTES } from './adapters/node.js'
export type { Quota } from './algorithms/algorithm.js'
export { MAX_UNITS } from './algorithms/algorithm.js'

export { formatIssue } from './config/config-error.js'
export type { PolicyInput } from './config/define-config.js'
export { mistakeAt } from './config/describe-value.js'
export type { Upstream } from './config/file/gateway.js'
export { parseUpstream, upstreamOf } from './config/file/gateway.js'
export type { ReadOptions } from './config/parse-config.js'
export { configSchema } from './config/schema.js'
export type { Environment, Settings } from './config/settings.js'
export { configWithSettings, loadSettings } from './config/settings.js'
export type { HeaderField } from './decision/headers.js'
export type { Mistake } from './errors/mistake.js'
export { mistakeText } from './errors/mistake.js'
export { nearestName } from './errors/nearest-name.js'
export { printable, shownName } from './errors/shown-text.js'
export type { GivenLimit, GivenLimits, GivenLimitsAnswer } from './limiter/given-limits.js'
export { checkLimits, refundLimits } from './limiter/given-limits.js'
export type { InspectedLimit, InspectOptions } from './limiter/inspection.js'
export type { LostSettings } from './limiter/operators.js'
export type { Family } from './observe/prometheus/families.js'
export type { Arrival, ArrivalSample } from './observe/statistics/arrivals.js'
export { mergeArrivals } from './observe/statistics/arrivals.js'
export type { Denial, DeniedCaller, DeniedCallers } from './observe/statistics/denials.js'
export { addCounts as addLatencies, quantileMs as latencyQuantileMs } from './observe/statistics/latencies.js'
export type { Report } from './observe/statistics/report.js'
export type { LimiterReading, ProcessStatistics } from './observe/statistics/statistics.js'
export type { NodeState, StoreCounts } from './observe/statistics/store-counts.js'
export { FAILURE_KINDS } from './observe/statistics/store-counts.js'
export type { TallyCounts } from './observe/statistics/tally.js'
export type { ReleaseUpstream, UpstreamOutcome } from './outbound/adaptive-concurrency.js'
export { outcomeOfStatus } from './outbound/adaptive-hosts.js'
export type { Asking, Priority } from './outbound/fair-permits.js'
export { claimedMethods } from './policy/claimed-methods.js'
export type {
  CorsConfig,
  Enforcement,
  Masks,
  MatchConfig,
  PolicyOrTier,
  RuleConfig,
  UpstreamConfig,
} from './policy/config.js'
export type { OverrideOptions, OverrideTarget } from './policy/override.js'
export type { OverrideEffect } from './policy/override-effect.js'
export type { Meter, MeterConfig } from './policy/token-meters.js'
export { waitWords } from './policy/wait.js'
export type { Change, ChangeTrail } from './store/change-trail.js'
export { fleetRecords } from './store/redis/fleet-records.js'
export type {
  FleetReading,
  ProcessReport,
  Ring,
  RingPoint,
  StatisticsStore,
} from './store/statistics-store.js'
export type { MaybePromise } from './store/store.js'
export type { ForwardedHeader } from './subject/client-address.js'
export { peerAddress } from './subject/client-address.js'
export { isReference, referenceOf } from './subject/digest.js'
export { keyPattern, readKey } from './subject/read-key.js'
export { perAddressOf } from './subject/source-config.js'
export type { StoredSubject } from './subject/subject.js'
export { ANONYMOUS, namesNobody } from './subject/subject.js'
