import type { Family } from 'headgate/internal'
import type { Statistics } from 'headgate/metrics'
import { prometheus } from 'headgate/metrics'
import { type Endpoint, open, reads } from '../admin/endpoint.js'
import type { ConfigCounts } from '../admin/probes.js'
import type { HttpAnswer } from '../http/problem.js'
import { type AnswerReading, answerFamilies } from './gateway-answers.js'
import { type ProcessReading, processFamilies } from './process-counts.js'
import { type TokenReading, tokenFamilies } from './token-counts.js'
import { type UpstreamReading, upstreamFamilies } from './upstream-counts.js'

export interface MetricsOptions {
  /** Whether anybody may read them. */
  readonly isPublic: boolean
  configState(): ConfigCounts
  readonly upstreams: { read(): readonly UpstreamReading[] }
  answers(): readonly AnswerReading[]
  tokens(): readonly TokenReading[]
  /** Returns the figures of the server's processes. */
  process(): ProcessReading
}

export function metricsEndpoints(
  statistics: Pick<Statistics, 'read'>,
  { isPublic, configState, upstreams, answers, tokens, process }: MetricsOptions,
): readonly Endpoint[] {
  const exposed = prometheus({
    statistics,
    more: () => [
      ...serverFamilies(configState()),
      ...upstreamFamilies(upstreams.read()),
      ...answerFamilies(answers()),
      ...tokenFamilies(tokens()),
      ...processFamilies(process()),
    ],
  })
  const metrics = (req: { readonly headers: { readonly accept?: string | undefined } }): HttpAnswer => {
    const { contentType, body } = exposed.answer(req.headers.accept)
    return { status: 200, headers: [['Content-Type', contentType]], body }
  }
  return [{ path: '/metrics', methods: { GET: isPublic ? open(metrics) : reads(metrics) } }]
}

/** Returns the counters of a server beside those of its decisions. */
function serverFamilies({ config, rejectedConfigs }: ConfigCounts): readonly Family[] {
  const one = (value: number) => [{ labels: {}, value }]
  return [
    {
      name: 'rate_limit_config_rejected_total',
      type: 'counter',
      labels: [],
      samples: one(rejectedConfigs),
      help: 'Policy files rejected since the start.',
    },
    {
      name: 'rate_limit_config_stale',
      type: 'gauge',
      labels: [],
      samples: one(config === 'stale' ? 1 : 0),
      help: '1 while the policy file cannot be used and the last good one is in force.',
    },
  ]
}
