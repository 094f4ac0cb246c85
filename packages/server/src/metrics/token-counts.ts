import type { Family } from 'headgate/internal'
import type { EstimateReason, TokenListener } from '../gateway/token-reservation.js'

/** The tokens settled by one meter or, with a reason, how often an estimate took the place of a number. */
export interface TokenReading {
  readonly meter: string
  readonly reason: EstimateReason | null
  readonly count: number
}

/** Counts the tokens of models. */
export class TokenCounts implements TokenListener {
  private counts: readonly TokenReading[] = []

  onTokens(meter: string, count: number): void {
    this.counts = mergeTokens([...this.counts, { meter, reason: null, count }])
  }

  onEstimate(meter: string, reason: EstimateReason): void {
    this.counts = mergeTokens([...this.counts, { meter, reason, count: 1 }])
  }

  read(): readonly TokenReading[] {
    return this.counts
  }
}

/** Adds up the readings of several processes. */
export function mergeTokens(readings: readonly TokenReading[]): readonly TokenReading[] {
  const sums = new Map<string, TokenReading>()
  for (const reading of readings) {
    const key = `${reading.meter} ${reading.reason}`
    sums.set(key, { ...reading, count: (sums.get(key)?.count ?? 0) + reading.count })
  }
  return [...sums.values()]
}

export function tokenFamilies(readings: readonly TokenReading[]): readonly Family[] {
  return [
    {
      name: 'rate_limit_gateway_tokens_total',
      type: 'counter',
      labels: ['meter'],
      help: 'Tokens of models that responses took, as settled, by meter: input, output or total.',
      samples: readings.flatMap(({ meter, reason, count }) =>
        reason === null ? [{ labels: { meter }, value: count }] : [],
      ),
    },
    {
      name: 'rate_limit_gateway_token_estimates_total',
      type: 'counter',
      labels: ['meter', 'reason'],
      help: 'Requests and responses that did not tell a number of tokens, so that an estimate took its place, by reason.',
      samples: readings.flatMap(({ meter, reason, count }) =>
        reason === null ? [] : [{ labels: { meter, reason }, value: count }],
      ),
    },
  ]
}
