/** Laws of units that processes lease, spend by themselves and give back. */

import type { Limit } from '../../src/algorithms/algorithm.ts'
import { isBuckets, isConcurrency, isCounter, isLog, isTokenBucket } from '../support/limit-kinds.ts'
import {
  type Account,
  chargedUnits,
  refundableUnits,
  returnedUnits,
  spentUnits,
  unspentUnits,
} from './ledger.ts'
import { keysOf, limitsInForce, type PolicyName } from './policies.ts'
import { type CheckRecord, DEADLINE_MS, type SimulatedProcess } from './simulated-process.ts'
import type { KeyRecord } from './simulated-redis.ts'

/** The deadline of giving back, and late timers. */
const CLOSE_US = (DEADLINE_MS + 15) * 1000

/**
 * Nobody may give back units that were charged without anybody's knowledge; only the process that spent units may give
 * them back.
 */
export function spendsWhatItTook(account: Account): string[] {
  const { process, key, chargedAtUs } = account
  const [charged, spent] = [chargedUnits(account), spentUnits(account)]
  const returned = returnedUnits(account)
  const where = `${process.host.name} at ${key}, charged at ${chargedAtUs}`
  if (spent > charged) return [`${where}: ${spent} units were spent of ${charged}`]
  const most = charged - spent + refundableUnits(account)
  return returned > most ? [`${where}: ${returned} units were given back; at most ${most} were left`] : []
}

/** A leased unit is spent after it was charged, within the lease's time and, for a counter, in its window. */
export function spendsInTime({ process, key, spendings }: Account): string[] {
  return spendings.flatMap(({ check, position, lease, atUs, charge }) => {
    if (lease === null) return []
    const where = `#${check.id} of ${process.host.name} at ${key}`
    if (charge === undefined) return [`${where} was spent before it was charged`]
    const limit = limitsInForce(check.policy)[position] as Limit
    const forUs = limit.algorithm.lease?.lastsUs(limit, lease, charge.atUs) ?? lease.ttlUs
    const afterUs = atUs - charge.trueUs
    return afterUs < forUs
      ? []
      : [`${where} was spent ${afterUs} us after it was charged; its time is ${forUs}`]
  })
}

/** Units leased after recovery and left over by live processes have come back when all are closed. */
export function givesBackWhatIsLeft(accounts: readonly Account[], fromUs: number): string[] {
  return accounts
    .filter(account => account.process.crashedAtUs === null && refundableUnits(account) === 0)
    .filter(({ charges }) => charges.every(({ trueUs }) => trueUs >= fromUs))
    .filter(account => unspentUnits(account) > 0)
    .map(
      account =>
        `${account.process.host.name} is closed and never gave back ${unspentUnits(account)} of ${account.key}`,
    )
}

/** A process that is told to end does so: one round of giving back, within the deadline. */
export function closesInTime({ host, left, stalls }: SimulatedProcess): string[] {
  if (left === null || host.dead) return []
  if (left.error !== null) return [`${host.name} failed to close: ${left.error}`]
  if (left.doneUs === null) return [`${host.name} never closed`]
  const { fromUs, doneUs } = left
  if (stalls.some(({ untilUs }) => untilUs >= fromUs) || doneUs - fromUs <= CLOSE_US) return []
  return [`${host.name} took ${(doneUs - fromUs) / 1000} ms to close`]
}

/**
 * Returns when nothing that was charged counts any more, on the server's clock, including what dead processes had
 * leased.
 */
export function untouchedFromUs(records: readonly KeyRecord[], policy: PolicyName, subject: string): number {
  const keys = keysOf(policy, subject)
  const times = limitsInForce(policy).map((limit, position) => {
    const charged = records.filter(({ key, what }) => key === keys[position] && what !== 'reset')
    return Math.max(0, ...charged.map(({ atUs }) => atUs)) + countsForUs(limit)
  })
  return Math.max(...times)
}

function countsForUs(limit: Limit): number {
  if (isTokenBucket(limit)) return Math.ceil((limit.limit / limit.refillPerSecond) * 1e6)
  if (isConcurrency(limit)) return limit.holdForUs
  if (isBuckets(limit)) return limit.windowUs + Math.ceil(limit.windowUs / limit.buckets)
  if (isLog(limit)) return limit.windowUs
  if (isCounter(limit)) return 2 * limit.windowUs
  throw new Error(`how long does ${limit.algorithm.name} count?`)
}

/** Nothing is stranded for good: one request gets the whole of an untouched limit. */
export function isGivenTheWhole({ id, policy, cost, decision }: CheckRecord): string[] {
  if (decision?.allowed && decision.source === 'redis') return []
  return [`#${id} was not given ${cost} of ${policy}, of which nothing was used any more`]
}

/** Returns how many units a crashed process had leased and could still have spent. */
export function heldUnits(account: Account, atUs: number): number {
  const lease = account.spendings.find(({ lease }) => lease !== null)?.lease
  const isHeld = lease && account.charges.some(({ trueUs }) => trueUs + lease.ttlUs > atUs)
  return isHeld ? unspentUnits(account) : 0
}
