/** Replays a sample of the last hour's callers against other limits, on a clock of its own. */
import { type Clock, createLimiter } from 'headgate'
import { defineConfig } from 'headgate/config'
import type { Arrival, ArrivalSample, PolicyInput } from 'headgate/internal'

export interface WhatIf {
  readonly sample: {
    readonly subjects: number
    readonly requests: number
    readonly share: number
    readonly fromMs: number
    readonly toMs: number
  }
  readonly actual: { readonly denied: number; readonly rate: number }
  readonly whatIf: {
    readonly denied: number
    readonly rate: number
    /** The 95 % interval of all callers' rate. */
    readonly rateLow: number
    readonly rateHigh: number
    readonly subjectsDenied: number
  }
}

interface Played {
  requests: number
  denied: number
}

const POLICY = 'whatif'
/** 95 % of a normal distribution lie within this many standard deviations. */
const DEVIATIONS = 1.96

/** Returns null if nobody in the sample asked for it. Throws a `ConfigError` for invalid limits. */
export async function playWhatIf(
  { arrivals, share }: ArrivalSample,
  asks: (arrival: Arrival) => boolean,
  limits: PolicyInput,
): Promise<WhatIf | null> {
  const asked = arrivals.filter(asks)
  const [first] = asked
  const last = asked.at(-1)
  const config = defineConfig({ policies: { [POLICY]: limits }, default: { policy: POLICY } })
  if (first === undefined || last === undefined) return null
  let atMs = first.atMs
  const clock: Clock = { nowUs: () => Math.floor(atMs * 1000), unixMs: () => atMs }
  const limiter = createLimiter({ config, clock, onWarning: () => {} })
  const played = new Map<string, Played>()
  for (const { subject, atMs: arrivedAtMs, cost } of asked) {
    atMs = Math.max(atMs, arrivedAtMs)
    const one = played.get(subject) ?? { requests: 0, denied: 0 }
    const { allowed } = await limiter.check({ type: 'played', id: subject }, { policy: POLICY, cost })
    one.requests++
    if (!allowed) one.denied++
    played.set(subject, one)
  }
  await limiter.close()
  const actuallyDenied = asked.filter(({ denied }) => denied).length
  return {
    sample: {
      subjects: played.size,
      requests: asked.length,
      share,
      fromMs: first.atMs,
      toMs: last.atMs,
    },
    actual: { denied: actuallyDenied, rate: actuallyDenied / asked.length },
    whatIf: estimate([...played.values()], share),
  }
}

/**
 * Estimates a ratio from clusters: subjects were drawn with all of their requests. The deviation is that of denied
 * − rate × requests over the subjects, and zero if all were drawn.
 */
function estimate(subjects: readonly Played[], share: number): WhatIf['whatIf'] {
  const requests = subjects.reduce((sum, one) => sum + one.requests, 0)
  const denied = subjects.reduce((sum, one) => sum + one.denied, 0)
  const rate = denied / requests
  const squares = subjects.reduce((sum, one) => sum + (one.denied - rate * one.requests) ** 2, 0)
  const count = subjects.length
  const variance = count < 2 ? 0.25 : (squares * count) / (count - 1) / requests ** 2
  const margin = DEVIATIONS * Math.sqrt(variance * (1 - share))
  return {
    denied,
    rate,
    rateLow: Math.max(0, rate - margin),
    rateHigh: Math.min(1, rate + margin),
    subjectsDenied: subjects.filter(one => one.denied > 0).length,
  }
}
