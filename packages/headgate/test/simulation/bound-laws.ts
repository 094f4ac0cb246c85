/**
 * No more is admitted than a limit promises: by Redis, by a process without it, by the fleet from its leases. A
 * failover, a step of the server's clock and a reset each start a new count: they may grant a limit once more, not
 * more.
 */

import type { Limit } from '../../src/algorithms/algorithm.ts'
import { type Admission, checkBounds } from '../redis-proofs/bounds.ts'
import { isTokenBucket } from '../support/limit-kinds.ts'
import { groupBy } from './group-by.ts'
import type { Account, Spending } from './ledger.ts'
import { leaseOf, limitsInForce, limitsPromised } from './policies.ts'
import type { CheckRecord, SimulatedProcess } from './simulated-process.ts'
import type { KeyRecord } from './simulated-redis.ts'

/** Redis charges no more than the limit it was asked for allows. */
export function keepsTheBounds(records: readonly KeyRecord[]): string[] {
  return countsOf(records).flatMap(counts =>
    [...groupBy(counts.keys(), record => counts.get(record) as string)].flatMap(([count, found]) => {
      const { limit } = found[0] as KeyRecord
      return overAdmissions(limit, netOf(found), count)
    }),
  )
}

/** The fleet admits no more under a leased policy than its limit would allow without leases. */
export function leasesAddNothing(accounts: readonly Account[], records: readonly KeyRecord[]): string[] {
  const leased = accounts.filter(({ spendings }) =>
    spendings.some(({ check }) => leaseOf(check.policy) !== null),
  )
  const paid = leased.flatMap(({ spendings }) => spendings.filter(({ charge }) => charge !== undefined))
  return countsOf(records).flatMap(counts => {
    const countOf = ({ charge }: Spending): string | undefined => counts.get(charge as KeyRecord)
    const known = paid.filter(spending => countOf(spending) !== undefined)
    return [...groupBy(known, spending => countOf(spending) as string)].flatMap(([count, found]) => {
      const [{ check, position, charge }] = found as [Spending, ...Spending[]]
      const limit = limitsPromised(check.policy)[position] as Limit
      const gifts = accounts
        .filter(({ key }) => key === charge?.key)
        .flatMap(account => giftsOf(account, counts, count, limit))
      const history = [...found.map(spending => admissionOf(spending, limit)), ...gifts]
      history.sort((one, other) => one.atUs - other.atUs)
      return overAdmissions(limit, history, `${count}, as spent`)
    })
  })
}

/**
 * Units that came back to a count beyond what was never spent of it: from another count; and to a bucket, which is
 * credited at once, also what callers gave back.
 */
function giftsOf(
  { charges, refunds, spendings }: Account,
  counts: ReadonlyMap<KeyRecord, string>,
  count: string,
  limit: Limit,
): Admission[] {
  const isOfCount = charges[0] !== undefined && counts.get(charges[0]) === count
  return refunds
    .filter(refund => counts.get(refund) === count)
    .filter(({ unitsAsked }) => {
      const byCaller = spendings.some(({ check }) => check.refundAsked === unitsAsked)
      return !isOfCount || (byCaller && isTokenBucket(limit))
    })
    .map(refund => ({ atUs: creditedAtUs(refund, counts), cost: -refund.units }))
}

/**
 * A bucket whose clock stepped back stands still until it has caught up: what comes back in the meantime counts
 * then.
 */
function creditedAtUs(refund: KeyRecord, counts: ReadonlyMap<KeyRecord, string>): number {
  let atUs = refund.atUs
  for (const [record, count] of counts) {
    if (record === refund) break
    if (record.what === 'charge' && count === counts.get(refund)) atUs = Math.max(atUs, record.atUs)
  }
  return atUs
}

/** On the server's clock as it ran when the units were charged: from there on the process counts by itself. */
function admissionOf({ check, charge, atUs, lease }: Spending, limit: Limit): Admission {
  const { atUs: chargedAtUs, trueUs } = charge as KeyRecord
  const elapsedUs = lease === null ? 0 : atUs - trueUs
  const refunded = isTokenBucket(limit) ? 0 : check.refundAsked
  return { atUs: chargedAtUs + elapsedUs, cost: check.cost - refunded }
}

/** Without Redis a process admits its share of a limit and no more, however often Redis comes and goes. */
export function keepsItsShare({ host, checks }: SimulatedProcess): string[] {
  const local = checks
    .filter(({ how, decision }) => how === 'check' && decision?.source === 'local' && decision.allowed)
    .toSorted((one, other) => (one.settledAtUs ?? 0) - (other.settledAtUs ?? 0))
  const shares = groupBy(local, ({ policy, subject, sharedAmong }) => `${policy} ${subject} ${sharedAmong}`)
  return [...shares].flatMap(([which, found]) => {
    const [{ policy, sharedAmong }] = found as [CheckRecord, ...CheckRecord[]]
    return limitsInForce(policy).flatMap(limit => {
      const share = limit.algorithm.share(limit, sharedAmong)
      const history = found.map(({ settledAtUs, cost }) => ({
        atUs: settledAtUs ?? 0,
        cost: Math.min(cost, share.limit),
      }))
      return checkBounds(share, history)
        .filter(({ promise, worst, bound }) => promise !== 'aligned window' && worst > bound + 1e-6)
        .map(
          ({ worst, bound }) => `${host.name} admitted ${worst} of ${which} by itself; its share is ${bound}`,
        )
    })
  })
}

/**
 * The counts a record belongs to, twice: in the state that survived every failover, and in everything that was ever
 * said.
 */
function countsOf(records: readonly KeyRecord[]): ReadonlyMap<KeyRecord, string>[] {
  return [
    countsIn(
      records.filter(({ lost }) => !lost),
      ({ key, clockEpoch }) => `${key} in epoch ${clockEpoch}`,
    ),
    countsIn(
      records,
      ({ key, clockEpoch, lineage }) => `${key} in epoch ${clockEpoch} after failover ${lineage}`,
    ),
  ]
}

function countsIn(
  records: readonly KeyRecord[],
  nameOf: (record: KeyRecord) => string,
): ReadonlyMap<KeyRecord, string> {
  const resets = new Map<string, number>()
  const counts = new Map<KeyRecord, string>()
  for (const record of records) {
    const { what, key } = record
    if (what === 'reset') resets.set(key, (resets.get(key) ?? 0) + 1)
    else counts.set(record, `${nameOf(record)} after reset ${resets.get(key) ?? 0}`)
  }
  return counts
}

/**
 * Returns charges without what was taken back: in a bucket at the time it came back, elsewhere as if they had not
 * been made. What comes back to a count it was not charged in is a gift at that time.
 */
function netOf(records: readonly KeyRecord[]): Admission[] {
  const net: { atUs: number; cost: number; process: string | null }[] = []
  for (const { what, process, atUs, units, limit, chargedAtUs } of records) {
    if (what === 'charge') net.push({ atUs, cost: units, process })
    else {
      const charge = net.find(made => made.process === process && made.atUs === chargedAtUs)
      if (!isTokenBucket(limit) && charge !== undefined) charge.cost -= units
      else net.push({ atUs: Math.max(atUs, net.at(-1)?.atUs ?? atUs), cost: -units, process: null })
    }
  }
  return net
}

function overAdmissions(limit: Limit, history: readonly Admission[], where: string): string[] {
  return checkBounds(limit, history)
    .filter(({ worst, bound }) => worst > bound + 1e-6)
    .map(({ promise, worst, bound }) => `${where}: ${worst} admitted, at most ${bound} promised (${promise})`)
}
