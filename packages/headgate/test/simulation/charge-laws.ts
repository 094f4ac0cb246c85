/** Redis charges a request once if it said so, at most once if nobody knows, and takes back only what it is asked to. */
import { groupBy } from './group-by.ts'
import type { Account } from './ledger.ts'
import { keysOf, leaseOf, limitsInForce } from './policies.ts'
import type { CheckRecord } from './simulated-process.ts'
import { isProbe, type KeyRecord } from './simulated-redis.ts'

/** Applies to runs in which a call is for one request. */
export function chargesOnce(checks: readonly CheckRecord[], records: readonly KeyRecord[]): string[] {
  const charged = new Map<string, number>()
  const perCheck = new Map<number, number>()
  for (const { what, checkId, key } of records) {
    if (what !== 'charge' || checkId === null || isProbe(key)) continue
    const one = `#${checkId} at ${key}`
    charged.set(one, (charged.get(one) ?? 0) + 1)
    perCheck.set(checkId, (perCheck.get(checkId) ?? 0) + 1)
  }
  const twice = [...charged].filter(([, times]) => times > 1)
  const problems = twice.map(([one, times]) => `${one} was charged ${times} times`)
  for (const { id, how, policy, decision } of checks) {
    if (decision?.source !== 'redis') continue
    const due = how === 'check' && decision.allowed ? limitsInForce(policy).length : 0
    const got = perCheck.get(id) ?? 0
    if (got !== due) problems.push(`#${id} was charged ${got} times; the decision says ${due}`)
  }
  return problems
}

/** Applies to runs in which a call is for one request. */
export function refundsOnlyWhatWasAsked(
  checks: readonly CheckRecord[],
  records: readonly KeyRecord[],
): string[] {
  const asked = new Map(checks.map(check => [check.id, check]))
  const given = new Map<string, number>()
  return records.flatMap(({ what, checkId, key, units }) => {
    if (what !== 'refund') return []
    const check = checkId === null ? undefined : asked.get(checkId)
    const one = `#${checkId} at ${key}`
    given.set(one, (given.get(one) ?? 0) + units)
    if (check?.decision?.source !== 'redis')
      return [`${one} was given back although its outcome is not known`]
    return (given.get(one) ?? 0) > check.refundAsked ? [`${one} was given back more than was asked`] : []
  })
}

/**
 * Applies to all runs: a charge that no decision reports was made for a request with an unknown outcome, each for a
 * different one, and not before it was asked. On a leased key it may have been a grant.
 */
export function chargesWhoAsked(accounts: readonly Account[]): string[] {
  const perKey = groupBy(accounts, ({ process, key }) => `${process.host.name} at ${key}`)
  return [...perKey].flatMap(([where, found]) => {
    const [{ process, key }] = found as [Account, ...Account[]]
    if (isProbe(key)) return []
    const asking = process.checks.filter(
      ({ how, policy, subject }) => how === 'check' && keysOf(policy, subject).includes(key),
    )
    if (asking.some(({ policy }) => leaseOf(policy) !== null)) return []
    const unknown = asking.filter(({ decision }) => decision?.source !== 'redis')
    const untold = found.flatMap(untoldCharges).toSorted((one, other) => one.trueUs - other.trueUs)
    return untold.flatMap(({ trueUs, units }) => {
      const index = unknown.findIndex(({ startedAtUs, cost }) => startedAtUs <= trueUs && cost === units)
      if (index === -1) return [`${where}: ${units} units were charged for nobody, or twice`]
      unknown.splice(index, 1)
      return []
    })
  })
}

function untoldCharges({ charges, spendings }: Account): KeyRecord[] {
  const untold = [...charges]
  for (const { check } of spendings) {
    const index = untold.findIndex(({ units }) => units === check.cost)
    if (index !== -1) untold.splice(index, 1)
  }
  return untold
}

/**
 * Nothing charged before a reset comes back after it, unless the server lost data or its clock was stepped.
 */
export function givesNothingToANewLife(records: readonly KeyRecord[]): string[] {
  const resetAtUs = new Map<string, number>()
  return records.flatMap(({ what, key, atUs, chargedAtUs, units, lost, clockEpoch, lineage }) => {
    const life = `${key} in epoch ${clockEpoch} after failover ${lineage}`
    if (what === 'reset' && !lost) resetAtUs.set(life, atUs)
    if (what !== 'refund' || chargedAtUs === null || units === 0) return []
    return chargedAtUs <= (resetAtUs.get(life) ?? -1)
      ? [`${units} units of ${key} charged before its reset came back after it`]
      : []
  })
}
