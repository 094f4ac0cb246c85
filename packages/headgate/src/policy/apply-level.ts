/** Whose budgets the level of a rule charges: the caller's, everybody's, those of several subjects. */
import { typeOf } from '../subject/subject.js'
import { joined } from '../subject/together.js'
import { AppliedLevel } from './applied-level.js'
import type { ConfiguredPolicy } from './configured-policy.js'
import { chargedOf, type Level } from './level.js'
import type { Minted } from './request-facts.js'

/** No real subject can have this name, because an id that starts with a tilde is digested. */
const EVERYONE = 'global:~all'

/** Applies a level to the subjects of a request. */
export function applyLevel(
  level: Level,
  subjects: readonly string[],
  minted: Minted | null = null,
): AppliedLevel {
  const asking = chargedOf(level.subjectTypes, subjects)
  const subject = payerOf(level, asking, subjects)
  const others = othersOf(level, subjects)
  const also = minted === null ? others : withAddress(minted, subject, level.configured, others)
  const meters = level.meters.map(({ meter, level: own }) => ({
    meter,
    level: applyLevel(own, subjects, minted),
  }))
  return new AppliedLevel(level, asking, subject, also, meters)
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
