/**
 * An upstream in virtual time: so many requests at once, each for so long; the others wait in an unbounded queue.
 */
import type { Flight } from '../../src/outbound/latency-gradient.js'

/** The upstream's capacity from a time on. */
export interface Phase {
  readonly fromMs: number
  readonly workers: number
  readonly serviceMs: number
}

/** Decides how many may be in flight. */
export interface Limiting {
  readonly limit: number
  begin(inFlight: number, nowUs: number): Flight
  answered(flight: Flight, nowUs: number): void
}

export interface Run {
  readonly phases: readonly Phase[]
  readonly untilMs: number
  /** Arrivals a second, whatever becomes of them. */
  readonly rate: number
  /** A later answer is useless. */
  readonly patienceMs: number
  readonly limiting: Limiting
  random(): number
}

export interface Outcome {
  /** When each useful answer came, in milliseconds. */
  readonly usefulAtMs: readonly number[]
  /** The limit at every tenth of a second. */
  readonly limits: readonly number[]
}

interface Asked {
  readonly flight: Flight
  readonly atMs: number
  endsAtMs: number
}

const STEP_MS = 1

/** Plays the whole history, a millisecond at a time. */
export function playUpstream({ phases, untilMs, rate, patienceMs, limiting, random }: Run): Outcome {
  const queue: Asked[] = []
  let serving: Asked[] = []
  const usefulAtMs: number[] = []
  const limits: number[] = []
  let nextMs = 0
  for (let nowMs = 0; nowMs < untilMs; nowMs += STEP_MS) {
    const phase = phases.findLast(({ fromMs }) => fromMs <= nowMs) as Phase
    const done = serving.filter(({ endsAtMs }) => endsAtMs <= nowMs)
    serving = serving.filter(({ endsAtMs }) => endsAtMs > nowMs)
    for (const { flight, atMs } of done) {
      limiting.answered(flight, nowMs * 1_000)
      if (nowMs - atMs <= patienceMs) usefulAtMs.push(nowMs)
    }
    for (; nextMs <= nowMs; nextMs += (-Math.log(1 - random()) * 1_000) / rate) {
      const inFlight = queue.length + serving.length
      if (inFlight >= limiting.limit) continue
      queue.push({ flight: limiting.begin(inFlight + 1, nowMs * 1_000), atMs: nowMs, endsAtMs: 0 })
    }
    while (queue.length > 0 && serving.length < phase.workers) {
      const asked = queue.shift() as Asked
      asked.endsAtMs = nowMs + phase.serviceMs * (0.8 + 0.4 * random())
      serving.push(asked)
    }
    if (nowMs % 100 === 0) limits.push(limiting.limit)
  }
  return { usefulAtMs, limits }
}

/** A limit that stays as it is. */
export function fixedLimit(limit: number): Limiting {
  return { limit, begin: (_, beganUs) => ({ kind: '', beganUs, window: 0 }), answered() {} }
}
