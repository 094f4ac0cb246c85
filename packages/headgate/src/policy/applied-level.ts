import type { ConfiguredPolicy } from './configured-policy.js'
import type { RequestReading } from './found-routes.js'
import type { Level } from './level.js'
import type { MeterConfig } from './token-meters.js'

/** A level as it applies to one request: whose budget it charges, and whether it decides. */
export class AppliedLevel {
  /** Whether it decides, is evaluated in shadow, or yields to a more specific level. */
  part: 'decides' | 'shadow' | 'unused' = 'unused'
  /** The readings of the request that lead to it. */
  readonly readings: RequestReading[] = []
  readonly isShadow: boolean
  /** The units that it takes, whatever the request costs; null: as the request costs. */
  units: number | null = null

  constructor(
    readonly level: Level,
    /** Who is asking: it decides whether the level binds, even where everyone shares the budget. */
    asking: string,
    /** The subject whose budget is charged. */
    readonly subject: string = asking,
    /** Further subjects of the request that are charged with it. */
    readonly also: readonly { readonly subject: string; readonly configured: ConfiguredPolicy }[] = [],
    /** The tokens of a model that it limits, for the same subjects. */
    readonly meters: readonly { readonly meter: MeterConfig; readonly level: AppliedLevel }[] = [],
  ) {
    this.isShadow =
      level.mode === 'shadow' || (level.mode === 'enforce' && !isInShare(asking, level.enforcePercent))
  }
}

/**
 * Whether a subject is among the limited percentage. The choice is stable, so that raising the percentage only adds
 * subjects.
 */
function isInShare(subject: string, percent: number): boolean {
  return percent >= 100 || placeOf(subject) < percent
}

/** Maps a subject to a fixed place between 0 and 100. */
function placeOf(subject: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < subject.length; index++) {
    hash = Math.imul(hash ^ subject.charCodeAt(index), 0x01000193)
  }
  // So far the last characters of an id have reached only the low bits; this spreads them over all.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32) * 100
}
