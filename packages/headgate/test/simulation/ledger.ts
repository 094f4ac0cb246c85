/**
 * Records the units each process took of each key, and what became of them. Decisions and refunds carry the time at
 * which Redis charged them. That time identifies the charge, whoever sent it, and also a grant that many requests spend.
 */

import type { Lease } from '../../src/algorithms/algorithm.ts'
import { Decision } from '../../src/decision/decision.ts'
import { keysOf, leaseOf } from './policies.ts'
import type { CheckRecord, SimulatedProcess } from './simulated-process.ts'
import type { KeyRecord } from './simulated-redis.ts'

/** One use of charged units of a key. */
export interface Spending {
  readonly check: CheckRecord
  /** The position of the key's limit in the policy. */
  readonly position: number
  /** Null if the request was charged by itself. */
  readonly lease: Lease | null
  readonly atUs: number
  /** The charge it is paid from; undefined if there is none. */
  readonly charge: KeyRecord | undefined
}

/** The units a process took of a key at one server time. */
export interface Account {
  readonly process: SimulatedProcess
  readonly key: string
  readonly chargedAtUs: number | null
  readonly charges: KeyRecord[]
  readonly refunds: KeyRecord[]
  readonly spendings: Spending[]
}

export function accountsOf(
  processes: readonly SimulatedProcess[],
  records: readonly KeyRecord[],
): readonly Account[] {
  const accounts = new Map<string, Account>()
  const named = new Map(processes.map(process => [process.host.name, process]))
  const open = (process: SimulatedProcess, key: string, chargedAtUs: number | null): Account => {
    const name = `${process.host.name} ${key} ${chargedAtUs}`
    let account = accounts.get(name)
    if (account === undefined) {
      account = { process, key, chargedAtUs, charges: [], refunds: [], spendings: [] }
      accounts.set(name, account)
    }
    return account
  }

  for (const record of records) {
    const process = named.get(record.process)
    if (process === undefined) continue
    if (record.what === 'charge') open(process, record.key, record.atUs).charges.push(record)
    else if (record.what === 'refund') open(process, record.key, record.chargedAtUs).refunds.push(record)
  }
  for (const process of processes) {
    for (const check of process.checks) {
      const { how, decision, policy, subject, settledAtUs } = check
      if (how !== 'check' || decision?.source !== 'redis' || !decision.allowed) continue
      const keys = keysOf(policy, subject)
      const admissions = Decision.checkOf(decision).admissions()?.binding ?? []
      for (const [position, { chargedAtUs }] of admissions.entries()) {
        if (chargedAtUs === null) continue
        const account = open(process, keys[position] as string, chargedAtUs)
        const atUs = settledAtUs as number
        const charge = chargeFor(account, check.cost, atUs)
        const lease = decision.leased ? leaseOf(policy) : null
        account.spendings.push({ check, position, lease, atUs, charge })
      }
    }
  }
  return [...accounts.values()]
}

/**
 * The charge that a request is paid from: of those at the time of the last one before it, the first that has enough left.
 * A reset may lie between two charges of one microsecond, and nothing says which of them a lease came from: this way
 * the count after the reset is never told to have paid for more than it did.
 */
function chargeFor({ charges, spendings }: Account, cost: number, atUs: number): KeyRecord | undefined {
  const last = charges.findLast(({ trueUs }) => trueUs <= atUs)
  const spentOf = (charge: KeyRecord): number =>
    spendings.reduce((sum, each) => sum + (each.charge === charge ? each.check.cost : 0), 0)
  return (
    charges.find(charge => charge.trueUs === last?.trueUs && spentOf(charge) + cost <= charge.units) ?? last
  )
}

export function chargedUnits({ charges }: Account): number {
  return charges.reduce((sum, { units }) => sum + units, 0)
}

export function spentUnits({ spendings }: Account): number {
  return spendings.reduce((sum, { check }) => sum + check.cost, 0)
}

/** Units the process asked to be taken back, as far as that arrived. */
export function returnedUnits({ refunds }: Account): number {
  return refunds.reduce((sum, { unitsAsked }) => sum + unitsAsked, 0)
}

/** Units callers asked to be taken back of their requests, whether that arrived or not. */
export function refundableUnits({ spendings }: Account): number {
  return spendings.reduce((sum, { check }) => sum + check.refundAsked, 0)
}

/** Units taken in advance and neither spent nor given back: held, if that is still possible. */
export function unspentUnits(account: Account): number {
  if (!account.spendings.some(({ lease }) => lease !== null)) return 0
  return Math.max(0, chargedUnits(account) - spentUnits(account) - returnedUnits(account))
}
