/** Laws of permits and settled estimates: they are held, given back and settled once. */

import { Decision } from '../../src/decision/decision.ts'
import { isConcurrency } from '../support/limit-kinds.ts'
import { groupBy } from './group-by.ts'
import type { LastingRecord } from './lasting-load.ts'
import { keysOf, limitsInForce } from './policies.ts'
import { readRenewals } from './script-call.ts'
import { DEADLINE_MS, type SimulatedProcess } from './simulated-process.ts'
import type { KeyRecord } from './simulated-redis.ts'

/** A turn of the event loop, and a late timer. */
const SOON_US = 2_000
/** A call that fails is not repeated: it arrives within its deadline, or not at all. */
const ARRIVES_US = (DEADLINE_MS + 10) * 1000

/** Denials of what must never happen. */
export function lastingProblems(
  processes: readonly SimulatedProcess[],
  records: readonly KeyRecord[],
): string[] {
  return [
    ...holdsNoMorePermits(records),
    ...processes.flatMap(leavesAloneWhatIsOver),
    ...settlesOnce(processes, records),
  ]
}

/** Denials of what must hold when the faults are over: every later permit is kept, and everything comes back. */
export function lastingRecoveryProblems(
  processes: readonly SimulatedProcess[],
  records: readonly KeyRecord[],
  fromUs: number,
): string[] {
  const known = groupBy(records, ({ process, key, chargedAtUs, atUs, what }) =>
    nameOf(process, key, what === 'charge' ? atUs : chargedAtUs),
  )
  return processes.flatMap(process => {
    const calm = process.lasting.filter(({ admittedAtUs, overAtUs }) => {
      const leftUs = process.left?.fromUs ?? process.crashedAtUs ?? Number.POSITIVE_INFINITY
      return admittedAtUs >= fromUs && overAtUs !== null && overAtUs + ARRIVES_US < leftUs
    })
    return calm.flatMap(record => {
      const { key, chargedAtUs } = chargeOf(record)
      const found = known.get(nameOf(process.host.name, key, chargedAtUs)) ?? []
      const where = `${record.policy} of ${record.subject} at ${process.host.name}, charged at ${chargedAtUs}`
      if (record.policy === 'estimated') return isSettled(record, found, where)
      return [...isGivenBack(found, where), ...isKept(record, found, where)]
    })
  })
}

/** Permits that have neither expired nor been given back never exceed the limit. */
function holdsNoMorePermits(records: readonly KeyRecord[]): string[] {
  const [limit] = limitsInForce('permits')
  const lives = groupBy(
    records.filter(record => isConcurrency(record.limit)),
    ({ key, clockEpoch, lineage }) => `${key} in epoch ${clockEpoch} after failover ${lineage}`,
  )
  return [...lives].flatMap(([life, found]) => {
    const expiresAtUs = new Map<number, number>()
    let most = 0
    for (const { what, atUs, trueUs: _, chargedAtUs, limit: asked } of found) {
      const holdForUs = isConcurrency(asked) ? asked.holdForUs : 0
      const name = what === 'charge' ? atUs : (chargedAtUs ?? -1)
      if (what === 'refund') expiresAtUs.delete(name)
      else expiresAtUs.set(name, atUs + holdForUs)
      most = Math.max(most, [...expiresAtUs.values()].filter(endsAtUs => endsAtUs > atUs).length)
    }
    return most <= (limit?.limit ?? 0) ? [] : [`${life}: ${most} permits were held at once`]
  })
}

/** The place of an ended request is not renewed any more: it would be taken anew. */
function leavesAloneWhatIsOver({ host, lasting, sent }: SimulatedProcess): string[] {
  const overAtUs = new Map(
    lasting.map(record => {
      const { key, chargedAtUs } = chargeOf(record)
      return [`${key} ${chargedAtUs}`, record.overAtUs]
    }),
  )
  return sent.flatMap(({ call, how, atUs }) => {
    if (call.script !== 'renew' || how === 'eval') return []
    return readRenewals(call.keys, call.args)
      .map(({ check, takenAtUs }) => `${check.subject} ${takenAtUs}`)
      .filter(permit => (overAtUs.get(permit) ?? Number.POSITIVE_INFINITY) + ARRIVES_US < atUs)
      .map(permit => `${host.name} renewed ${permit} although its request was over`)
  })
}

/** Redis learns of an estimate exactly what was settled, once at most, whatever became of the reply. */
function settlesOnce(processes: readonly SimulatedProcess[], records: readonly KeyRecord[]): string[] {
  const due = new Map<string, number[]>()
  for (const { host, lasting } of processes) {
    for (const record of lasting.filter(({ policy, tooMany }) => policy === 'estimated' && tooMany !== 0)) {
      const { key, chargedAtUs } = chargeOf(record)
      const name = nameOf(host.name, key, chargedAtUs)
      due.set(name, [...(due.get(name) ?? []), record.tooMany])
    }
  }
  return records.flatMap(({ what, key, limit, process, chargedAtUs, unitsAsked }) => {
    if (what !== 'refund' || isConcurrency(limit)) return []
    const left = due.get(nameOf(process, key, chargedAtUs)) ?? []
    const index = left.indexOf(unitsAsked)
    if (index === -1) return [`${process} settled ${unitsAsked} units of ${key} for nobody, or twice`]
    left.splice(index, 1)
    return []
  })
}

function isSettled({ tooMany }: LastingRecord, found: readonly KeyRecord[], where: string): string[] {
  const isThere = found.some(({ what, unitsAsked }) => what === 'refund' && unitsAsked === tooMany)
  return tooMany === 0 || isThere ? [] : [`${where} was never settled`]
}

function isGivenBack(found: readonly KeyRecord[], where: string): string[] {
  return found.some(({ what }) => what === 'refund') ? [] : [`${where} was never given back`]
}

/** Renewed before it expires, for as long as it is held. */
function isKept({ overAtUs }: LastingRecord, found: readonly KeyRecord[], where: string): string[] {
  const times = found.filter(({ what }) => what !== 'refund').map(({ trueUs }) => trueUs)
  const [limit] = limitsInForce('permits')
  const holdForUs = limit !== undefined && isConcurrency(limit) ? limit.holdForUs : 0
  const gaps = [...times, (overAtUs ?? 0) - SOON_US].map(
    (atUs, index, all) => atUs - (all[index - 1] ?? atUs),
  )
  return Math.max(...gaps) < holdForUs ? [] : [`${where} expired while it was held`]
}

function chargeOf({ policy, subject, decision }: LastingRecord): {
  readonly key: string
  readonly chargedAtUs: number | null
} {
  const [charge] = Decision.checkOf(decision).admissions()?.binding ?? []
  return { key: keysOf(policy, subject)[0] as string, chargedAtUs: charge?.chargedAtUs ?? null }
}

function nameOf(process: string, key: string, chargedAtUs: number | null): string {
  return `${process} ${key} ${chargedAtUs}`
}
