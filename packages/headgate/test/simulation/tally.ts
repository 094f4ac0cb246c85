import { isConcurrency } from '../support/limit-kinds.ts'
import { heldUnits } from './lease-laws.ts'
import type { Account } from './ledger.ts'
import { readQuestions } from './script-call.ts'
import type { SimulatedProcess } from './simulated-process.ts'
import type { SimulatedRedis } from './simulated-redis.ts'

/** Counts what a run came across, to see whether it was worth running. */
export function tallyOf(
  processes: readonly SimulatedProcess[],
  redis: SimulatedRedis,
  accounts: readonly Account[],
): Record<string, number> {
  const tally: Record<string, number> = { lostWrites: redis.lostWrites }
  const count = (name: string): void => {
    tally[name] = (tally[name] ?? 0) + 1
  }
  for (const process of processes) {
    count('processes')
    for (const { how, decision } of process.checks) {
      if (decision === null) continue
      const outcome = decision.allowed ? 'allowed' : 'denied'
      count(`${decision.source} ${outcome}`)
      if (decision.leased && how === 'check') count(`leased ${outcome}`)
    }
    for (const { event } of process.events) if (event.type === 'breaker') count(`breaker ${event.state}`)
    for (const { call } of process.sent) {
      if (call.script === 'reset') count('resets')
      const { script, keys, args } = call
      if (script === 'decide' && readQuestions(keys, args).length > 1) count('shared calls')
    }
    const held = accounts.filter(account => account.process === process)
    const { crashedAtUs, left } = process
    if (crashedAtUs !== null && held.some(account => heldUnits(account, crashedAtUs) > 0)) {
      count('crashes with a lease')
    }
    const isReturned = ({ refunds, spendings }: Account): boolean =>
      spendings.some(({ lease }) => lease !== null) &&
      refunds.some(({ trueUs }) => trueUs >= (left?.fromUs ?? 0))
    if (left !== null && held.some(isReturned)) count('closed with a lease')
  }
  for (const { what, alternative } of redis.records) {
    if (what === 'charge' && alternative > 0) count('grants in part')
  }
  for (const { what, limit } of redis.lasting) {
    const kind = isConcurrency(limit) ? 'permits' : 'estimates'
    count(`${kind}: ${what}`)
  }
  for (const { spendings, refunds } of accounts) {
    if (refunds.length > 0 && spendings.some(({ lease }) => lease !== null)) count('leases given back')
  }
  return tally
}
