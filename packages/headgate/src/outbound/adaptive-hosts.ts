import { HeadgateError } from '../errors/headgate-error.js'
import {
  type AdaptiveConcurrency,
  type AdaptiveConcurrencyOptions,
  adaptiveConcurrency,
  type HowItEnded,
  type LeaveUpstream,
} from './adaptive-concurrency.js'

/** The bounds of what a host is found to take. */
export type AdaptiveBounds = Pick<AdaptiveConcurrencyOptions, 'floor' | 'ceiling'>

/** Waits for a place among the calls to a host. Rejects when there is none in time. */
export type EnterHost = (
  host: string,
  patience: { readonly timeoutMs: number; readonly signal?: AbortSignal },
) => Promise<LeaveUpstream>

/** Hosts whose capacity is known; beyond it that of the first is found out anew. */
const MAX_HOSTS = 1_000
/** How a host says that it has too much to do. */
const TOO_MUCH = [429, 503]

/** Makes what finds out by itself how many calls each host can take. Options that are wrong throw here. */
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

/** Keeps a place until the answer begins. */
export async function inPlace(
  leave: LeaveUpstream,
  signal: AbortSignal | undefined,
  send: () => Promise<Response>,
): Promise<Response> {
  try {
    const response = await send()
    leave(howAnswered(response.status))
    return response
  } catch (error) {
    leave(signal?.aborted ? 'abandoned' : 'failed')
    throw error
  }
}

/** By the status of an answer. Errors may come quicker than answers, and would make these look slow. */
export function howAnswered(status: number): HowItEnded {
  if (TOO_MUCH.includes(status)) return 'failed'
  return status >= 500 ? 'unknown' : 'answered'
}
