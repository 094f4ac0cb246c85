export type { Arrival, ArrivalSample } from './observe/statistics/arrivals.js'
export { mergeArrivals } from './observe/statistics/arrivals.js'
export type { Denial, DeniedCaller, DeniedCallers } from './observe/statistics/denials.js'
export type { LatencyCounts } from './observe/statistics/latencies.js'
export {
  addCounts as addLatencies,
  LATENCY_BOUNDS_SECONDS,
  quantileMs as latencyQuantileMs,
} from './observe/statistics/latencies.js'
export type { Exemplar, ExemplarLabels } from './observe/statistics/recorder.js'
export type { Report } from './observe/statistics/report.js'
export type {
  LimiterReading,
  ProcessStatistics,
  Statistics,
  StatisticsOptions,
} from './observe/statistics/statistics.js'
export { createStatistics } from './observe/statistics/statistics.js'
export type { FailureKind, NodeState, StoreCounts } from './observe/statistics/store-counts.js'
export { FAILURE_KINDS } from './observe/statistics/store-counts.js'
export type { TallyCounts, TallyLabels } from './observe/statistics/tally.js'
export { isReference, referenceOf } from './subject/digest.js'
