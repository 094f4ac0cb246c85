/** Calls somebody else's API without being refused: each waits for its turn, and for as long as the other side asks. */
import { endIfThrown, endWhenRead } from '../adapters/response-end.js'
import type { Decision } from '../decision/decision.js'
import { HeadgateError, unexpected } from '../errors/headgate-error.js'
import type { Limiter } from '../limiter/limiter.js'
import type { SubjectInput } from '../subject/subject.js'
import { systemClock, systemTimers } from '../time/clock.js'
import { type AdaptiveBounds, createAdaptiveHosts, inPlace } from './adaptive-hosts.js'
import { pauseAfterMs } from './remote-quota.js'

export interface LimitFetchOptions<PolicyName extends string, TierName extends string> {
  readonly limiter: Limiter<PolicyName, TierName>
  /** The policy with the limits of the other side. */
  readonly policy: NoInfer<PolicyName>
  /** Whose budget a call takes from. Left out: that of the host, `host:api.example.com`. */
  readonly subject?: (url: URL) => SubjectInput
  /** Units a call takes. Default 1. */
  readonly cost?: number | ((url: URL, init: RequestInit | undefined) => number)
  /** How long a call waits for its turn. Default 30,000. */
  readonly timeoutMs?: number
  /**
   * Calls of this process under way at a host until its answer begins: as many as its answers show that it can take,
   * between `floor` and `ceiling`. Left out: any number.
   */
  readonly adaptive?: AdaptiveBounds
}

type Fetch = typeof globalThis.fetch

const nowMs = (): number => systemClock.nowUs() / 1_000

/** Hosts that asked to be left alone at once; beyond it the first of them are forgotten. */
const MAX_PAUSED = 1_000

/**
 * The same `fetch` under a limit, shared by all processes whose limiter has the same store. A call waits for its turn, and
 * for a host that said so by `Retry-After` or that its quota is used up. It rejects when that would take too long, and
 * when its signal is aborted. What was answered is returned as it is, also a refusal.
 *
 * @example
 * const fetchModel = limitFetch(fetch, { limiter, policy: 'model-api' })
 */
export function limitFetch<PolicyName extends string, TierName extends string>(
  fetch: Fetch,
  options: LimitFetchOptions<PolicyName, TierName>,
): Fetch {
  const { limiter, policy, subject = hostSubject, cost = 1, timeoutMs = 30_000 } = options
  if (typeof fetch !== 'function') {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'fetch', 'a function', fetch)
  }
  if (!limiter.policyNames.includes(policy)) {
    const expected = `one of ${limiter.policyNames.join(', ')}`
    throw unexpected('ERR_HEADGATE_UNKNOWN_POLICY', 'policy', expected, policy)
  }
  const enterHost = options.adaptive && createAdaptiveHosts(options.adaptive)
  const pausedUntilMs = new Map<string, number>()

  function pause(host: string, forMs: number): void {
    if (forMs === 0) return
    const untilMs = Math.max(pausedUntilMs.get(host) ?? 0, nowMs() + forMs)
    pausedUntilMs.delete(host)
    pausedUntilMs.set(host, untilMs)
    if (pausedUntilMs.size > MAX_PAUSED) pausedUntilMs.delete(pausedUntilMs.keys().next().value as string)
  }

  /** Settles when the host may be called again; a later answer may have made it later. */
  async function unlessPaused(
    host: string,
    deadlineMs: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    for (;;) {
      const forMs = (pausedUntilMs.get(host) ?? 0) - nowMs()
      if (forMs <= 0) return void pausedUntilMs.delete(host)
      if (nowMs() + forMs > deadlineMs) throw tooLate(host, forMs)
      await sleep(forMs, signal)
    }
  }

  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : String(input))
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined) ?? undefined
    const deadlineMs = nowMs() + timeoutMs
    await unlessPaused(url.host, deadlineMs, signal)
    const decision = await limiter.acquire(subject(url), {
      policy,
      cost: typeof cost === 'function' ? cost(url, init) : cost,
      timeoutMs: Math.max(0, deadlineMs - nowMs()),
      ...(signal && { signal }),
    })
    if (!decision.allowed) throw tooLate(url.host, decision.retryAfterMs)
    const ended = decision.isHeld ? () => void decision.release() : null
    return endIfThrown(ended, async () => {
      const leave = await orGiveBack(decision, async () => {
        await unlessPaused(url.host, deadlineMs, signal)
        const patience = { timeoutMs: Math.max(0, deadlineMs - nowMs()), ...(signal && { signal }) }
        return enterHost?.(url.host, patience)
      })
      const send = () => fetch(input, init)
      const response = leave === undefined ? await send() : await inPlace(leave, signal, send)
      pause(url.host, pauseAfterMs(response.headers, systemClock.unixMs()))
      return endWhenRead(ended, response)
    })
  }

  /** A call that is not sent has taken nothing of the other side's quota. */
  async function orGiveBack<Result>(decision: Decision, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      limiter.refund(decision).catch(() => {})
      throw error
    }
  }
}

function hostSubject({ hostname, port }: URL): SubjectInput {
  return { type: 'host', id: port === '' ? hostname : `${hostname}:${port}` }
}

function tooLate(host: string, waitMs: number | null): HeadgateError {
  const wait = waitMs === null ? 'no waiting helps' : `there is room in ${Math.ceil(waitMs / 1_000)} s`
  return new HeadgateError('ERR_HEADGATE_NO_TURN', `limitFetch: not sent to ${host} in time: ${wait}`)
}

async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const abort = () => {
      callOff()
      reject(signal?.reason)
    }
    const callOff = systemTimers.after(ms, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    signal?.addEventListener('abort', abort, { once: true })
  })
}
