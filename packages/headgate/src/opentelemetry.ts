export { type MetricsOptions, registerMetrics, traced } from './observe/opentelemetry/opentelemetry.js'
