/**
 * Calls an external API within its limits: each call waits for its turn, and for as long as the other side asks.
 */
import { endIfThrown, endWhenRead } from '../adapters/response-end.js'
import type { Decision } from '../decision/decision.js'
import { HeadgateError, unexpected } from '../errors/headgate-error.js'
import type { Limiter } from '../limiter/limiter.js'
import { STORE, type Store } from '../store/store.js'
import type { SubjectInput } from '../subject/subject.js'
import { systemClock, systemTimers } from '../time/clock.js'
import { type AdaptiveBounds, createAdaptiveHosts, inPlace } from './adaptive-hosts.js'
import { FixedWindows } from './fixed-windows.js'
import { askedPauseMs, pauseAfterMs, remoteQuota } from './remote-quota.js'
import { SharedPauses } from './shared-pauses.js'

export interface LimitFetchOptions<PolicyName extends string, TierName extends string> {
  readonly limiter: Limiter<PolicyName, TierName>
  /** The policy with the limits of the other side. */
  readonly policy: NoInfer<PolicyName>
  /** Whose budget a call is charged to. Default: the host's, `host:api.example.com`. */
  readonly subject?: (url: URL) => SubjectInput
  /** The cost of a call. Default 1. */
  readonly cost?: number | ((url: URL, init: RequestInit | undefined) => number)
  /** How long a call may wait for its turn. Default 30,000. */
  readonly timeoutMs?: number
  /**
   * Limits this process's calls waiting for a host's answer to what the host is measured to sustain, between
   * `floor` and `ceiling`. Default: unlimited.
   */
  readonly adaptive?: AdaptiveBounds
}

type Fetch = typeof globalThis.fetch

const nowMs = (): number => systemClock.nowUs() / 1_000

const REJECTIONS = [429, 503]
/** How many paused hosts are remembered; beyond that the oldest is forgotten. */
const MAX_PAUSED = 1_000

/**
 * Wraps `fetch` in a limit, shared by all processes whose limiters use the same store. A call waits for its turn, and for
 * a host that sent `Retry-After` or whose quota is used up, to any of them. It rejects if that would take too long, or if its signal is
 * aborted. Every response is returned as it is, even a rejection.
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
  const shared = sharedPauses(limiter, policy)
  const windows = new FixedWindows()

  function pause(host: string, forMs: number): void {
    if (forMs === 0) return
    const untilMs = Math.max(pausedUntilMs.get(host) ?? 0, nowMs() + forMs)
    pausedUntilMs.delete(host)
    pausedUntilMs.set(host, untilMs)
    if (pausedUntilMs.size > MAX_PAUSED) pausedUntilMs.delete(pausedUntilMs.keys().next().value as string)
  }

  /** Pauses as an answer says, in all processes if it holds for them. */
  function heed(host: string, { headers, status }: Response): void {
    const unixMs = systemClock.unixMs()
    const quota = remoteQuota(headers, unixMs)
    const windowMs = quota === null ? null : windows.leftMs(host, quota.resetMs, unixMs)
    const pauseMs = pauseAfterMs(headers, unixMs, windowMs)
    pause(host, pauseMs)
    const holdsForAll = windowMs !== null || REJECTIONS.includes(status)
    void shared?.extend(host, holdsForAll ? pauseMs : askedPauseMs(headers, unixMs))
  }

  /** Settles when the host may be called again. Loops, because a later answer may have extended the pause. */
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
        if (shared !== null) pause(url.host, await shared.leftMs(url.host))
        await unlessPaused(url.host, deadlineMs, signal)
        const patience = { timeoutMs: Math.max(0, deadlineMs - nowMs()), ...(signal && { signal }) }
        return enterHost?.(url.host, patience)
      })
      const send = () => fetch(input, init)
      const response = leave === undefined ? await send() : await inPlace(leave, signal, send)
      heed(url.host, response)
      return endWhenRead(ended, response)
    })
  }

  /** A call that is not sent has used nothing of the other side's quota. */
  async function orGiveBack<Result>(decision: Decision, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      limiter.refund(decision).catch(() => {})
      throw error
    }
  }
}

/** Null where no other process has the store. */
function sharedPauses(limiter: Limiter, policy: string): SharedPauses | null {
  const { [STORE]: store } = limiter as { readonly [STORE]?: Store }
  if (store === undefined || store.source === 'memory') return null
  return new SharedPauses(store, policy, host => limiter.nameOf({ type: 'host', id: host }))
}

function hostSubject({ hostname, port }: URL): SubjectInput {
  return { type: 'host', id: port === '' ? hostname : `${hostname}:${port}` }
}

function tooLate(host: string, waitMs: number | null): HeadgateError {
  const wait = waitMs === null ? 'retrying will not help' : `there is room in ${Math.ceil(waitMs / 1_000)} s`
  return new HeadgateError('ERR_HEADGATE_NO_TURN', `limitFetch: not sent to ${host} in time: ${wait}`)
}

async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  await new Promise<void>((resolve, reject) => {
    const abort = () => {
      cancel()
      reject(signal?.reason)
    }
    const cancel = systemTimers.after(ms, () => {
      signal?.removeEventListener('abort', abort)
      resolve()
    })
    signal?.addEventListener('abort', abort, { once: true })
  })
}
