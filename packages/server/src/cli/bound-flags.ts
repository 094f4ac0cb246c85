/**
 * The flags of `headgate serve` for how much of the gateway one client, one connection and the upstream may use.
 */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type Bounds, DEFAULT_BOUNDS } from '../http/bounds.js'

const MOST = 2 ** 31 - 1
const MS = 1_000

/** The flags as typed; 0 lifts a bound. */
export interface BoundFlags extends Omit<Bounds, 'bodyGraceMs' | 'responseTimeoutMs'> {
  /** In seconds. */
  readonly responseTimeout: number
}

export function addBoundFlags(command: Command): void {
  const { responseTimeoutMs, ...bounds } = DEFAULT_BOUNDS
  const flags: readonly (readonly [flags: string, text: string, value: number])[] = [
    ['--max-headers <number>', 'headers of a request; more get 431', bounds.maxHeaders],
    [
      '--max-client-connections <number>',
      'connections of one address, except trusted proxies; more are closed',
      bounds.maxClientConnections,
    ],
    [
      '--max-client-requests <number>',
      'requests of one client in progress at once; more get 429',
      bounds.maxClientRequests,
    ],
    [
      '--max-pipelined <number>',
      'requests of one connection in progress at once; it closes after them',
      bounds.maxPipelined,
    ],
    [
      '--max-upstream-connections <number>',
      'requests in progress at the upstream at once; more get 503',
      bounds.maxUpstreamConnections,
    ],
    [
      '--min-body-rate <number>',
      `bytes per second of a body; slower for ${bounds.bodyGraceMs / MS} s gets 408`,
      bounds.minBodyRate,
    ],
    [
      '--response-timeout <seconds>',
      'how long a client may leave its response unread before it is cut off',
      responseTimeoutMs / MS,
    ],
  ]
  for (const [name, text, value] of flags) {
    command.addOption(new Option(name, `${text}; 0: no bound`).argParser(parseBound).default(value))
  }
}

export function boundsOf({ responseTimeout, ...flags }: BoundFlags): Partial<Bounds> {
  const { maxHeaders, maxClientConnections, maxClientRequests } = flags
  const { maxPipelined, maxUpstreamConnections, minBodyRate } = flags
  return {
    maxHeaders,
    maxClientConnections,
    maxClientRequests,
    maxPipelined,
    maxUpstreamConnections,
    minBodyRate,
    responseTimeoutMs: responseTimeout * MS,
  }
}

function parseBound(text: string): number {
  if (/^\d{1,10}$/.test(text) && Number(text) <= MOST) return Number(text)
  throw new InvalidArgumentError(`expected a whole number from 0 to ${MOST}; got "${text}".`)
}
