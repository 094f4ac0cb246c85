import { typeOf } from '../subject/subject.js'
import { joined } from '../subject/together.js'
import type { ConfiguredPolicy } from './configured-policy.js'
import type { RequestReading } from './found-routes.js'
import { chargedOf, type Level } from './level.js'
import type { Minted } from './request-facts.js'
import type { MeterConfig } from './token-meters.js'

/** No real subject can have this name, because an id that starts with a tilde is digested. */
const EVERYONE = 'global:~all'

/** A level as it applies to one request: whose budget it charges, and whether it decides. */
export class AppliedLevel {
  /** Whether it decides, is evaluated in shadow, or yields to a more specific level. */
  part: 'decides' | 'shadow' | 'unused' = 'unused'
  /** The readings of the request that lead to it. */
  readonly readings: RequestReading[] = []
  /** The subject whose budget is charged. */
  readonly subject: string
  /** Further subjects of the request that are charged with it. */
  readonly also: readonly { readonly subject: string; readonly configured: ConfiguredPolicy }[]
  readonly isShadow: boolean
  /** The tokens of a model that it limits, for the same subjects. */
  readonly meters: readonly { readonly meter: MeterConfig; readonly level: AppliedLevel }[]
  /** The units that it takes, whatever the request costs; null: as the request costs. */
  units: number | null = null

  constructor(
    readonly level: Level,
    subjects: readonly string[],
    minted: Minted | null = null,
  ) {
    const asking = chargedOf(level.subjectTypes, subjects)
    this.subject = payerOf(level, asking, subjects)
    const others = level.also.length === 0 ? NOBODY_ELSE : othersOf(level, subjects)
    this.also = minted === null ? others : withAddress(minted, this.subject, level.configured, others)
    this.meters =
      level.meters.length === 0
        ? NO_METERS
        : level.meters.map(({ meter, level: own }) => ({
            meter,
            level: new AppliedLevel(own, subjects, minted),
          }))
    // Decided by who is asking, even where everyone shares the budget.
    this.isShadow =
      level.mode === 'shadow' || (level.mode === 'enforce' && !isInShare(asking, level.enforcePercent))
  }
}

/** Several types pay together if the request has a subject of each; otherwise the caller pays alone. */
function payerOf({ per }: Level, asking: string, subjects: readonly string[]): string {
  if (per === 'caller') return asking
  if (per === 'everyone') return EVERYONE
  const found = per.map(type => subjects.find(name => typeOf(name) === type))
  if (!found.every(name => name !== undefined)) return asking
  const { type, id } = joined(found)
  return `${type}:${id}`
}

const NOBODY_ELSE: AppliedLevel['also'] = []
const NO_METERS: AppliedLevel['meters'] = []

function othersOf({ also }: Level, subjects: readonly string[]): AppliedLevel['also'] {
  return also.flatMap(({ type, configured }) => {
    const subject = subjects.find(name => typeOf(name) === type)
    return subject === undefined ? [] : [{ subject, configured }]
  })
}

/** Adds the address beside every subject that may be made up. */
function withAddress(
  { address, times }: Minted,
  subject: string,
  configured: ConfiguredPolicy,
  others: AppliedLevel['also'],
): AppliedLevel['also'] {
  const shared = [{ subject, configured }, ...others].flatMap(payer => {
    const itsTimes = times.get(payer.subject)
    return itsTimes === undefined ? [] : [{ subject: address, configured: payer.configured.times(itsTimes) }]
  })
  return shared.length === 0 ? others : [...others, ...shared]
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
