import type { Config, Control, RuleLimiter } from 'headgate'
import type { ArrivalSample } from 'headgate/internal'
import type { Statistics } from 'headgate/metrics'
import { type Endpoint, meEndpoint } from '../admin/endpoint.js'
import { type Health, probes } from '../admin/probes.js'
import { decisionEndpoints } from '../decision-api/decision-endpoints.js'
import { openApiEndpoint } from '../decision-api/openapi/openapi-document.js'
import { usageEndpoints } from '../decision-api/usage-endpoints.js'
import type { WriteLine } from '../log/write-line.js'
import type { AnswerReading } from '../metrics/gateway-answers.js'
import { metricsEndpoints } from '../metrics/metrics-endpoints.js'
import type { ProcessReading } from '../metrics/process-counts.js'
import type { TokenReading } from '../metrics/token-counts.js'
import type { UpstreamReading } from '../metrics/upstream-counts.js'
import { findEndpoint } from '../observe/find-subjects.js'
import { type PolicyText, policyEndpoints } from '../observe/policy-endpoints.js'
import type { Stats } from '../observe/stats.js'
import { statsEndpoints } from '../observe/stats-endpoints.js'
import { subjectEndpoints } from '../observe/subject-endpoints.js'
import { operatorEndpoints } from '../operators/operator-endpoints.js'
import type { UsagePages } from '../redis/usage-pages.js'

export interface AdminEndpointsOptions extends Health {
  readonly limiter: RuleLimiter
  /** The policy file in force. */
  config(): Config
  /** The text of its file; null if there is none. */
  policyText(): Promise<PolicyText | null>
  readonly stats: Stats
  /** What reads the usage of all callers; null if it is kept in this process alone. */
  readonly usagePages: UsagePages | null
  readonly statistics: Pick<Statistics, 'read'>
  /** Returns when a share of the subjects asked. */
  arrivals(): Promise<ArrivalSample>
  readonly upstreams: { read(): readonly UpstreamReading[] }
  /** What the gateway has answered itself and closed. */
  answers(): readonly AnswerReading[]
  /** The tokens of models that the gateway has settled. */
  tokens(): readonly TokenReading[]
  /** Returns the figures of the server's processes. */
  process(): ProcessReading
  /** Changes the switches of this server's processes alone. */
  setControlHere(change: Partial<Control>): void
  /** Whether metrics need no token. */
  readonly metricsPublic: boolean
  readonly log: WriteLine
}

/** Returns everything there is on the admin port. */
export function adminEndpoints({
  limiter,
  config,
  policyText,
  stats,
  usagePages,
  statistics,
  arrivals,
  upstreams,
  answers,
  tokens,
  process,
  setControlHere,
  metricsPublic,
  log,
  ...health
}: AdminEndpointsOptions): readonly Endpoint[] {
  return [
    ...decisionEndpoints(limiter, log, stats.subjectOf),
    ...usageEndpoints(limiter, { subjectOf: stats.subjectOf, show: stats.show, pages: usagePages }),
    openApiEndpoint,
    meEndpoint,
    ...probes(health),
    ...metricsEndpoints(statistics, {
      isPublic: metricsPublic,
      configState: health.configState,
      upstreams,
      answers,
      tokens,
      process,
    }),
    ...operatorEndpoints(limiter, stats.subjectOf, setControlHere),
    ...statsEndpoints(stats),
    ...subjectEndpoints(limiter, stats),
    findEndpoint(limiter, stats, config),
    ...policyEndpoints({ stats, config, policyText, arrivals }),
  ]
}
