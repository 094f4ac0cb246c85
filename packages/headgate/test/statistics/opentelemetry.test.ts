import { context, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'
import { createLimiter, slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { createStatistics, histogramProducer, registerMetrics, traced } from 'headgate/metrics'
import { expect, it } from 'vitest'

const policies = { api: slidingWindowLog({ limit: 1, window: '1m' }) }

it('an SDK collects the same counters and histograms as Prometheus', async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const statistics = createStatistics()
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: 3_600_000,
    metricProducers: [histogramProducer({ statistics })],
  })
  const provider = new MeterProvider({ readers: [reader] })
  const stop = registerMetrics({ statistics, meter: provider.getMeter('test') })
  const limiter = createLimiter({ policies, statistics })
  for (let index = 0; index < 3; index++) await limiter.check('user:1', { policy: 'api' })
  await reader.forceFlush()
  const collected = exporter.getMetrics()[0]?.scopeMetrics.flatMap(({ metrics }) => metrics) ?? []
  const points = (name: string) =>
    collected
      .find(({ descriptor }) => descriptor.name === name)
      ?.dataPoints.map(({ attributes, value }) => ({ attributes, value }))
  expect(points('rate_limit_allowed')).toEqual([{ attributes: {}, value: 1 }])
  expect(points('rate_limit_rejections')).toContainEqual({
    attributes: { reason: 'local_exhausted' },
    value: 2,
  })
  const [latency] = points('rate_limit_latency_seconds') ?? []
  expect(latency).toMatchObject({
    attributes: { source: 'memory' },
    value: { count: expect.any(Number), sum: expect.any(Number) },
  })
  const { buckets } = (latency as { value: unknown }).value as { buckets: Record<string, number[]> }
  expect(buckets.counts).toHaveLength((buckets.boundaries ?? []).length + 1)
  stop()
  const noMeter = { statistics, meter: {} as never }
  expect(() => registerMetrics(noMeter)).toThrow('meter: expected a meter of @opentelemetry/api')
  await provider.shutdown()
})

it('the active span hears of the decision, whichever way it was asked for, and of no subject', async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  const exporter = new InMemorySpanExporter()
  const tracer = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).getTracer(
    'test',
  )
  const ruled = traced(createLimiter({ config: defineConfig({ policies, default: { policy: 'api' } }) }), {
    trace,
  })
  const limiter = traced(createLimiter({ policies }), { trace })
  await tracer.startActiveSpan('request', async span => {
    await limiter.check('user:secret', { policy: 'api' })
    limiter.checkNow('user:secret', { policy: 'api' })
    await ruled.request({ subject: 'user:secret' })
    ruled.requestNow({ subject: 'user:secret' })
    span.end()
  })
  await limiter.check('user:2', { policy: 'api' })
  const [span] = exporter.getFinishedSpans()
  expect(span?.events.map(({ name, attributes }) => [name, attributes?.['rate_limit.allowed']])).toEqual([
    ['rate_limit.decision', true],
    ['rate_limit.decision', false],
    ['rate_limit.decision', true],
    ['rate_limit.decision', false],
  ])
  expect(span?.events[0]?.attributes).toMatchObject({
    'rate_limit.policy': 'api',
    'rate_limit.source': 'memory',
    'rate_limit.reason': 'within-limit',
  })
  expect(JSON.stringify(span?.events)).not.toContain('secret')
  expect(ruled.policyNames).toEqual(['api'])
  expect(() => traced({}, { trace })).toThrow('limiter: expected a limiter')
  trace.disable()
  context.disable()
})
