/** Generated traffic, for those who have no log yet: well-behaved callers, and one in a few hundred that is not. */
import type { LoggedRequest } from './logged-request.js'

/** The patterns of generated traffic. */
export const PATTERNS = ['steady', 'bursts', 'abuse'] as const
export type Pattern = (typeof PATTERNS)[number]

export interface SyntheticOptions {
  readonly pattern: Pattern
  /** Requests a second of all callers together. */
  readonly rate: number
  readonly callers: number
  readonly seconds: number
  /** The same seed gives the same traffic. */
  readonly seed: number
}

/** A fixed day, so that reports of the same seed are the same. */
const START_MS = Date.UTC(2026, 0, 1)
const BURST_EVERY_MS = 60_000
const BURST_LASTS_MS = 5_000
/** How many times the rate between bursts a burst has; the average stays the same. */
const BURST_FACTOR = 8
/** One caller sends this share of all requests. */
const ABUSER_SHARE = 0.3

/** Yields requests in order of time. Times are random, so that callers do not fall into step. */
export function* synthesize(options: SyntheticOptions): Generator<LoggedRequest> {
  const { pattern, rate, callers, seconds, seed } = options
  const random = mulberry32(seed)
  const endMs = START_MS + seconds * 1000
  let atMs = START_MS
  while (true) {
    atMs += (-Math.log(1 - random()) * 1000) / rateAt(pattern, rate, atMs - START_MS)
    if (atMs >= endMs) return
    const isAbuser = pattern === 'abuse' && random() < ABUSER_SHARE
    const caller = isAbuser ? 0 : Math.floor(random() * callers)
    yield { atMs, subjects: [`ip:${addressOf(caller)}`], method: 'GET', path: '/' }
  }
}

function rateAt(pattern: Pattern, rate: number, elapsedMs: number): number {
  if (pattern !== 'bursts') return rate
  const inBursts = BURST_LASTS_MS / BURST_EVERY_MS
  const base = rate / (1 + (BURST_FACTOR - 1) * inBursts)
  return elapsedMs % BURST_EVERY_MS < BURST_LASTS_MS ? base * BURST_FACTOR : base
}

/** From 10.0.0.0/8, which has no public callers. */
function addressOf(caller: number): string {
  return `10.${(caller >> 16) & 255}.${(caller >> 8) & 255}.${caller & 255}`
}

/** A small generator that is good enough to draw callers and times. */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
