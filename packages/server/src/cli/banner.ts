import type { Decision } from 'headgate'
import { limitOwner, quotaWords } from '../gateway/quota-words.js'
import type { Service } from '../service/service.js'
import { readVersion } from './version.js'

const EXTRA_REQUESTS = 5
/** More requests than this nobody wants to see in a loop. */
const MOST_REQUESTS = 200

export interface BannerFacts {
  /** Whether the built-in upstream answers. */
  readonly isDemo: boolean
  /** Where limits are kept, in words. */
  readonly limits: string
  /** Whether nobody is asked for a token. */
  readonly isOpen: boolean
  /** How many processes serve. */
  readonly workers: number
}

/** Returns the lines a server prints at the start: where it listens, its limits, and a command to try it with. */
export function banner(service: Service, { isDemo, limits, isOpen, workers }: BannerFacts): string {
  const { example } = service
  return [
    `headgate ${readVersion()}, limits ${limits}${workers > 1 ? `, ${workers} workers` : ''}`,
    '',
    `  gateway       ${service.gatewayUrl}  ->  ${service.upstreamUrl}${isDemo ? ' (built-in demo)' : ''}`,
    `  decision API  ${service.adminUrl}  (${isOpen ? 'this machine only' : 'with a token'})`,
    ...(service.dashboardUrl === null ? [] : [`  dashboard     ${service.dashboardUrl}`]),
    ...(service.grpcAddress === null ? [] : [`  Envoy gRPC    ${service.grpcAddress}`]),
    `  limits        each client address: ${ruleWords(example)}`,
    '',
    ...trial(service.gatewayUrl, example),
    'Stop with Ctrl-C.',
  ].join('\n')
}

function ruleWords(example: Decision): string {
  // A burst is two limits with one quota, which is shown once.
  const quotas = new Set(example.verdicts.map(verdict => quotaWords(verdict.quota)))
  return `${limitOwner(example)}, ${[...quotas].join('; ') || 'unlimited'}`
}

function trial(url: string, example: Decision): string[] {
  // Requests one after the other never meet a limit on how many are in flight.
  const counted = example.verdicts.filter(({ quota }) => quota.unit !== 'concurrent-requests')
  const atOnce = Math.min(...counted.map(verdict => verdict.limit))
  if (atOnce + EXTRA_REQUESTS > MOST_REQUESTS) return [`Try it:  curl -i ${url}/`, '']
  return [
    `Try it: ${atOnce} times 200, then 429`,
    `  for i in $(seq ${atOnce + EXTRA_REQUESTS}); do curl -s -o /dev/null -w '%{http_code}\\n' ${url}/; done`,
    `  curl -i ${url}/`,
    '',
  ]
}
