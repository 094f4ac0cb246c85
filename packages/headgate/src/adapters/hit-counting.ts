/** The limits by which a store of express-rate-limit counts hits, and how many hits an answer means. */
import type { Options } from 'express-rate-limit'
import type { Limit } from '../algorithms/algorithm.js'
import { MAX_UNITS } from '../algorithms/algorithm.js'
import type { CounterLimit } from '../algorithms/sliding-window-counter.js'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.js'
import type { LogLimit } from '../algorithms/sliding-window-log.js'
import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import type { WindowOptions } from '../algorithms/window.js'
import type { Check } from '../check/check.js'
import { type HeadgateError, unexpected } from '../errors/headgate-error.js'
import type { Answer, Question, Verdict } from '../store/ask-store.js'

/** Up to this many hits every one in a window is stored; above it only two numbers are. */
const MAX_LOGGED = 1_000
const MAX_WINDOW_MS = 366 * 86_400_000
const DEFAULT_WINDOW_MS = 60_000

/** What an answer says about a key. */
export interface Counted {
  readonly totalHits: number
  /** Until the next hit is admitted if this one is not, otherwise until everything is available again. */
  readonly waitUs: number
}

/** How the hits of a middleware are counted. */
export interface HitCounting {
  /** Alternatives: the limits of the first that has room are charged. */
  readonly limits: readonly (readonly Limit[])[]
  /**
   * Reads an answer; null if no limit was looked at. `shares` are the limits that held, where only a share of them
   * did.
   */
  read(answer: Answer, shares?: readonly number[]): Counted | null
  /** Whether it needs `shares`, because it tells hits from what is left of a limit that nobody set. */
  readonly isOpenEnded: boolean
}

/** Reads what the middleware was given, in the way it does itself. */
export interface ParsedOptions {
  readonly windowMs: number
  readonly counting: HitCounting
  /** The option by which nothing can be counted. Another value was taken. */
  readonly mistake: HeadgateError | null
}

/**
 * Parses `limit` and `windowMs`. The middleware compares numbers, so a limit of 2.5 admits two and one of `Infinity`
 * everything. What nothing can be counted by must not fail every request: the nearest possible value is taken.
 */
export function parseOptions({ limit, windowMs: given }: Pick<Options, 'limit' | 'windowMs'>): ParsedOptions {
  const windowMs = nearestWindowMs(Number(given))
  const expected = `a number from 1 to ${MAX_WINDOW_MS} (366 days); it counts as ${windowMs}`
  const wrongWindow = Number(given) === windowMs ? null : mistaken('windowMs', expected, given)
  if (typeof limit === 'function') {
    return { windowMs, counting: countEveryHit(windowMs), mistake: wrongWindow }
  }
  const most = Number(limit)
  if (most >= 1) return { windowMs, counting: countUpTo(most, windowMs), mistake: wrongWindow }
  // Below 1 the middleware denies everything. Its handler may still want to know how many there were: express-slow-down
  // lets them all pass, the later the more they are.
  const expectedLimit = 'a number or a function; nothing is denied'
  const wrongLimit = Number.isNaN(most) ? mistaken('limit', expectedLimit, limit) : null
  return { windowMs, counting: countEveryHit(windowMs), mistake: wrongWindow ?? wrongLimit }
}

function mistaken(field: string, expected: string, got: unknown): HeadgateError {
  return unexpected('ERR_HEADGATE_INVALID_LIMIT', field, expected, got)
}

/** Microseconds are the finest that is counted in. */
function nearestWindowMs(ms: number): number {
  if (Number.isNaN(ms)) return DEFAULT_WINDOW_MS
  return Math.round(Math.min(Math.max(1, ms), MAX_WINDOW_MS) * 1_000) / 1_000
}

/** Counts up to a limit that is known, so that a denied hit costs nothing. */
export function countUpTo(most: number, windowMs: number, name?: string): HitCounting {
  const limit = limitOf(most, windowMs, name)
  return {
    limits: [[limit]],
    isOpenEnded: false,
    read({ verdicts }) {
      const verdict = verdicts[0]?.[0]
      if (verdict === undefined) return null
      const { allowed, remaining, resetAfterUs, retryAfterUs } = verdict
      if (allowed) return { totalHits: limit.limit - remaining, waitUs: resetAfterUs }
      // A limit that a function says is 0 never has room.
      const waitUs = Number.isFinite(retryAfterUs) ? retryAfterUs : limit.windowUs
      return { totalHits: limit.limit + 1, waitUs }
    },
  }
}

function limitOf(most: number, windowMs: number, name: string | undefined): LogLimit | CounterLimit {
  const limit = Math.max(0, Math.floor(Math.min(most, MAX_UNITS)))
  const options: WindowOptions = { limit, window: `${windowMs}ms`, ...(name !== undefined && { name }) }
  return limit <= MAX_LOGGED ? slidingWindowLog(options) : slidingWindowCounter(options)
}

/** The states of hits whose limit only the middleware knows. */
export const EVERY_HIT = 'hits'

/** Counts every hit: the first of a window in a log, which is exact, and all of them in a counter. */
function countEveryHit(windowMs: number): HitCounting {
  const log = limitOf(MAX_LOGGED, windowMs, EVERY_HIT)
  const counter = limitOf(MAX_UNITS, windowMs, EVERY_HIT)
  return {
    limits: [[log, counter], [counter]],
    isOpenEnded: true,
    read({ verdicts }, [logged = log.limit, counted = counter.limit] = []) {
      const inLog = verdicts[0]?.[0]
      const inCounter = (verdicts[1] ?? verdicts[0])?.at(-1)
      if (inLog === undefined || inCounter === undefined) return null
      if (inLog.allowed) return { totalHits: hitsOf(inLog, log, logged), waitUs: inLog.resetAfterUs }
      const least = MAX_LOGGED + (inCounter.chargedAtUs === null ? 0 : 1)
      const totalHits = Math.max(least, hitsOf(inCounter, counter, counted))
      return { totalHits, waitUs: Math.min(inCounter.resetAfterUs, counter.windowUs) }
    },
  }
}

/** In a process that has a share of the limit, each hit counts for those of the other processes, too. */
function hitsOf({ remaining }: Verdict, { limit }: Limit, share: number): number {
  return Math.ceil(((share - remaining) * limit) / share)
}

/** Returns the question whether a subject may have one more hit, or another `cost`. */
export function checksOfRequest(
  { limits }: HitCounting,
  policy: string,
  subject: string,
  cost = 1,
): Question {
  const check = (limit: Limit): Check => {
    return { subject, scope: 'global', name: `${policy}.${limit.id}`, limit, cost }
  }
  return { alternatives: limits.map(these => these.map(check)), shadow: [] }
}
