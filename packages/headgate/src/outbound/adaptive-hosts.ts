import { HeadgateError } from '../errors/headgate-error.js'
import {
  type AdaptiveConcurrency,
  type AdaptiveConcurrencyOptions,
  adaptiveConcurrency,
  type ReleaseUpstream,
  type UpstreamOutcome,
} from './adaptive-concurrency.js'

/** The bounds of a host's adaptive limit. */
export type AdaptiveBounds = Pick<AdaptiveConcurrencyOptions, 'floor' | 'ceiling'>

/** Waits for a permit among the calls to a host. Rejects if there is none in time. */
export type EnterHost = (
  host: string,
  patience: { readonly timeoutMs: number; readonly signal?: AbortSignal },
) => Promise<ReleaseUpstream>

/** How many hosts are tracked; beyond that, the oldest starts over. */
const MAX_HOSTS = 1_000
/** The statuses with which a host signals overload. */
const TOO_MUCH = [429, 503]

/** Creates the limits of calls per host, each adapting by itself. Throws for invalid options. */
export function createAdaptiveHosts(bounds: AdaptiveBounds): EnterHost {
  adaptiveConcurrency(bounds)
  const hosts = new Map<string, AdaptiveConcurrency>()

  function find(host: string): AdaptiveConcurrency {
    const known = hosts.get(host)
    if (known !== undefined) return known
    if (hosts.size >= MAX_HOSTS) hosts.delete(hosts.keys().next().value as string)
    const made = adaptiveConcurrency(bounds)
    hosts.set(host, made)
    return made
  }

  return async (host, patience) => {
    const upstream = find(host)
    const leave = await upstream.acquire(patience)
    if (leave !== null) return leave
    throw new HeadgateError(
      'ERR_HEADGATE_NO_TURN',
      `limitFetch: not sent to ${host} in time: it has as many calls as it can take (${upstream.limit})`,
    )
  }
}

/** Keeps a permit until the answer begins. */
export async function inPlace(
  leave: ReleaseUpstream,
  signal: AbortSignal | undefined,
  send: () => Promise<Response>,
): Promise<Response> {
  try {
    const response = await send()
    leave(outcomeOfStatus(response.status))
    return response
  } catch (error) {
    leave(signal?.aborted ? 'abandoned' : 'failed')
    throw error
  }
}

/** Classifies an answer by its status. Errors may come faster than answers and would make these look slow. */
export function outcomeOfStatus(status: number): UpstreamOutcome {
  if (TOO_MUCH.includes(status)) return 'failed'
  return status >= 500 ? 'unknown' : 'answered'
}
