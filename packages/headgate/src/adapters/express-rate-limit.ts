import type { ClientRateLimitInfo, Store as HitStore, Options } from 'express-rate-limit'
import type { Limit } from '../engine/limit.js'
import type { Check, Question, Verdict } from '../engine/question.js'
import { HeadgateError, unexpected } from '../errors/headgate-error.js'
import { MAX_UNITS, slidingWindowCounter, slidingWindowLog } from '../policy/limits.js'
import type { Store } from '../store/store.js'
import { createSubjectNamer, type SubjectInput, type SubjectOptions } from '../subject/subject.js'
import { systemClock } from '../time/clock.js'

export interface RateLimitStoreOptions {
  /** Where hits are counted: `memoryStore()` or `redisStore(client)`. Several middlewares may share one. */
  readonly store: Store
  /** Separates the budgets of two middlewares. Default `express-rate-limit`. */
  readonly name?: string
  /** How keys that are not addresses are hashed; they may be secrets. */
  readonly subject?: SubjectOptions
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/
const IPV4 = /^\d{1,3}(?:\.\d{1,3}){3}$/
/** An IPv6 address, or the network around it as express-rate-limit names its callers. */
const IPV6 = /^(?=[\da-f.]*:)[\da-f:.]+(?:\/\d{1,3})?$/i
/** Up to this limit every request of a window is stored; above it only two numbers are. */
const MAX_LOGGED = 1_000

/**
 * Creates a store for express-rate-limit 8: an app keeps its middleware and options, and hits are counted in a
 * sliding window, in this process or in Redis. A denied request costs nothing, unless the middleware may take hits
 * back.
 */
export function rateLimitStore(options: RateLimitStoreOptions): HitStore {
  const { store, name = 'express-rate-limit' } = options
  if (typeof store?.decide !== 'function') {
    const expected = 'what memoryStore() or redisStore() returns'
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'store', expected, store)
  }
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'name', 'up to 64 letters, digits, - or _', name)
  }
  const nameSubject = createSubjectNamer(options.subject)
  const clock = store.clock ?? systemClock
  let limit: Limit | undefined

  function checkOf(key: string): Check {
    if (limit === undefined) {
      throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
        field: 'store',
        expected: 'express-rate-limit to call init first',
        got: 'a request',
      })
    }
    return {
      subject: nameSubject(subjectOf(key)),
      scope: 'global',
      name: `${name}.${limit.id}`,
      limit,
      cost: 1,
    }
  }

  function info(check: Check, verdict: Verdict): ClientRateLimitInfo {
    const used = check.limit.limit - verdict.remaining
    const waitUs = verdict.allowed ? verdict.resetAfterUs : verdict.retryAfterUs
    const resetTime = new Date(clock.unixMs() + Math.ceil(waitUs / 1_000))
    return { totalHits: verdict.allowed ? used : check.limit.limit + 1, resetTime }
  }

  return {
    localKeys: store.source === 'memory',
    prefix: `${name}:`,

    init(middleware) {
      limit = limitOf(middleware)
    },

    async increment(key) {
      const check = checkOf(key)
      return info(check, only((await store.decide(question(check))).verdicts))
    },

    async get(key) {
      const check = checkOf(key)
      const verdict = only((await store.peek(question(check))).verdicts)
      return verdict.remaining === check.limit.limit ? undefined : info(check, verdict)
    },

    async decrement(key) {
      await store.refund([{ check: checkOf(key), units: 1, chargedAtUs: null }])
    },

    async resetKey(key) {
      await store.reset([checkOf(key)])
    },

    async shutdown() {
      await store.close()
    },
  }
}

/**
 * Uses the middleware's own limit, so that denied requests are not counted. If the limit depends on the request, or
 * the middleware takes hits back (including denied ones), every hit is counted and the middleware compares.
 */
function limitOf({ limit, windowMs, skipFailedRequests, skipSuccessfulRequests }: Options): Limit {
  const window = `${windowMs}ms` as const
  if (typeof limit !== 'number' || skipFailedRequests || skipSuccessfulRequests) {
    return slidingWindowCounter({ limit: MAX_UNITS, window, name: 'hits' })
  }
  return limit <= MAX_LOGGED ? slidingWindowLog({ limit, window }) : slidingWindowCounter({ limit, window })
}

/** Anything but an address may be an API key or a session, so it is stored only as a digest. */
function subjectOf(key: string): SubjectInput {
  if (IPV4.test(key)) return { type: 'ip', id: key }
  return { type: IPV6.test(key) ? 'network' : 'apikey', id: key }
}

function question(check: Check): Question {
  return { alternatives: [[check]], shadow: [] }
}

function only(verdicts: readonly (readonly Verdict[])[]): Verdict {
  const verdict = verdicts[0]?.[0]
  if (verdict === undefined)
    throw new HeadgateError('ERR_HEADGATE_STORE_REPLY', 'store: no verdict came back')
  return verdict
}
