/** Counting decisions, and offering the counts to Prometheus and OpenTelemetry. */
export { histogramProducer, registerMetrics, traced } from './observe/opentelemetry/opentelemetry.js'
export type { Prometheus } from './observe/prometheus/prometheus.js'
export { prometheus } from './observe/prometheus/prometheus.js'
export type { Statistics } from './observe/statistics/statistics.js'
export { createStatistics } from './observe/statistics/statistics.js'
