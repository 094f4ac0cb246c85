/** Turns the estimates of a model's tokens into checks, beside those of the request itself. */
import type { ActivePolicies } from './active-policies.js'
import type { AppliedLevel } from './applied-level.js'
import { assignParts, conclude, type Resolution, type ResolvedReading } from './resolution.js'
import { type Estimates, METERS, type Meter } from './token-meters.js'

/** Resolves what a request reserves: every meter of every rule that applies to it, all or none. */
export function resolveTokens(active: ActivePolicies, request: Resolution, estimates: Estimates): Resolution {
  const readings = request.readings.flatMap(({ levels }) =>
    METERS.flatMap(meter => {
      const metered = levels.filter(({ part }) => part !== 'unused').flatMap(level => meteredOf(level, meter))
      return metered.length === 0 ? [] : [readingOf(active, metered, estimates)]
    }),
  )
  const cost = readings.reduce((most, reading) => Math.max(most, reading.cost), 0)
  const tokens = conclude(active, readings, {
    tier: request.tier,
    given: null,
    cost,
    isSkipped: request.bypass === 'skipped',
  })
  return { ...tokens, tokens: request.tokens }
}

type Metered = AppliedLevel['meters'][number]

function meteredOf({ meters }: AppliedLevel, meter: Meter): readonly Metered[] {
  return meters.filter(one => one.meter.meter === meter)
}

function readingOf(
  active: ActivePolicies,
  metered: readonly Metered[],
  estimates: Estimates,
): ResolvedReading {
  for (const { meter, level } of metered) level.units = estimates[meter.meter] ?? meter.reserve
  const cost = Math.max(...metered.map(({ level }) => level.units ?? 0))
  return {
    ...assignParts(
      active,
      metered.map(({ level }) => level),
    ),
    cost,
    skipped: false,
  }
}
