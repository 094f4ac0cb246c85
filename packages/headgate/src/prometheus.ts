export { CONTENT_TYPES, type TextFormat } from './observe/prometheus/exposition.js'
export type { Family, Histogram, Sample } from './observe/prometheus/families.js'
export type { PromClientRegistry, Prometheus, PrometheusOptions } from './observe/prometheus/prometheus.js'
export { prometheus } from './observe/prometheus/prometheus.js'
