/** What must hold in every run, whatever the faults were. Each law gives the ways in which it was broken. */
import type { Limit } from '../../src/engine/limit.ts'
import { shareOf } from '../../src/store/guard/local-share.ts'
import { type Admission, checkBounds } from '../redis-proofs/bounds.ts'
import { type CheckRecord, DEADLINE_MS, POLICIES, type SimulatedProcess } from './simulated-process.ts'
import type { KeyRecord } from './simulated-redis.ts'

/** A timer may be this late, and a process that was stalled gets the deadline's grace on top. */
const TIMER_LATE_US = 1_000
const GRACE_US = 10_000

/** What must never happen. */
export function safetyProblems(
  processes: readonly SimulatedProcess[],
  records: readonly KeyRecord[],
): string[] {
  const checks = processes.flatMap(process => process.checks)
  return [
    ...checks.flatMap(settlesInTime),
    ...checks.flatMap(isDecided),
    ...chargesOnce(checks, records),
    ...refundsOnlyWhatWasAsked(checks, records),
    ...keepsTheBounds(records),
    ...processes.flatMap(keepsItsShare),
    ...processes.flatMap(leavesAnOpenNodeAlone),
  ]
}

/** What must be so again some time after the last fault. */
export function recoveryProblems(processes: readonly SimulatedProcess[], fromUs: number): string[] {
  return processes.flatMap(({ host: { name }, checks, connection, ...process }) => {
    const problems = checks
      .filter(({ startedAtUs, decision }) => startedAtUs >= fromUs && decision?.source !== 'redis')
      .map(({ id, decision }) => `#${id} of ${name} is decided by ${decision?.source} after recovery`)
    if (process.breakers().length > 0) problems.push(`${name} still has a breaker that is not closed`)
    if (connection.unanswered() > 0) problems.push(`${name} still waits for ${connection.unanswered()} calls`)
    if (process.liveProcesses() !== processes.length) {
      problems.push(`${name} counts ${process.liveProcesses()} processes of ${processes.length}`)
    }
    return problems
  })
}

function settlesInTime(check: CheckRecord): string[] {
  const { id, process, startedAtUs, settledAtUs } = check
  let dueUs = startedAtUs + DEADLINE_MS * 1000 + TIMER_LATE_US
  for (const { fromUs, untilUs } of process.stalls) {
    const overlaps = fromUs <= dueUs && untilUs > startedAtUs
    if (overlaps) dueUs = Math.max(dueUs, untilUs + GRACE_US + 2 * TIMER_LATE_US)
  }
  if (settledAtUs === null) return process.host.dead ? [] : [`#${id} never settled`]
  return settledAtUs <= dueUs
    ? []
    : [`#${id} settled ${(settledAtUs - startedAtUs) / 1000} ms after it began`]
}

function isDecided({ id, decision, error, mode }: CheckRecord): string[] {
  if (error !== null) return [`#${id} failed: ${error}`]
  if (decision === null) return []
  const { source } = decision
  return source === 'redis' || source === (mode ?? 'local') ? [] : [`#${id} was decided by ${source}`]
}

/** Redis charged a check once if it said so, and at most once if nobody knows. */
function chargesOnce(checks: readonly CheckRecord[], records: readonly KeyRecord[]): string[] {
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
    const due = how === 'check' && decision.allowed ? limitsOf(policy).length : 0
    const got = perCheck.get(id) ?? 0
    if (got !== due) problems.push(`#${id} was charged ${got} times; the decision says ${due}`)
  }
  return problems
}

function refundsOnlyWhatWasAsked(checks: readonly CheckRecord[], records: readonly KeyRecord[]): string[] {
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
 * What Redis admitted keeps the limit's bound: in the state that survived every failover, and in all it ever said
 * between two failovers. Where its clock stepped a new count begins: a step may give a limit once more, not more.
 */
function keepsTheBounds(records: readonly KeyRecord[]): string[] {
  return [
    ...boundsOf(
      records.filter(({ lost }) => !lost),
      ({ key, clockEpoch }) => `${key} in epoch ${clockEpoch}`,
    ),
    ...boundsOf(
      records,
      ({ key, clockEpoch, lineage }) => `${key} in epoch ${clockEpoch} after failover ${lineage}`,
    ),
  ]
}

function boundsOf(records: readonly KeyRecord[], spanOf: (record: KeyRecord) => string): string[] {
  const spans = groupBy(records, spanOf)
  return [...spans].flatMap(([span, found]) => {
    const { limit } = found[0] as KeyRecord
    return overAdmissions(limit, netOf(found), span)
  })
}

/** Charges without what was taken back: in a bucket at the time it came back, elsewhere as if it had not been made. */
function netOf(records: readonly KeyRecord[]): Admission[] {
  const net: { atUs: number; cost: number; checkId: number | null }[] = []
  for (const { what, checkId, atUs, units, limit } of records) {
    if (what === 'charge') net.push({ atUs, cost: units, checkId })
    else if (what === 'refund' && limit.algorithm === 'token-bucket') {
      net.push({ atUs: Math.max(atUs, net.at(-1)?.atUs ?? atUs), cost: -units, checkId: null })
    } else if (what === 'refund') {
      const charge = net.find(made => made.checkId === checkId)
      if (charge !== undefined) charge.cost -= units
    }
  }
  return net
}

function overAdmissions(limit: Limit, history: readonly Admission[], where: string): string[] {
  return checkBounds(limit, history)
    .filter(({ worst, bound }) => worst > bound + 1e-6)
    .map(({ promise, worst, bound }) => `${where}: ${worst} admitted, at most ${bound} promised (${promise})`)
}

/** Without Redis a process admits its share of a limit and no more, however often Redis comes and goes. */
function keepsItsShare({ host, checks }: SimulatedProcess): string[] {
  const local = checks
    .filter(({ how, decision }) => how === 'check' && decision?.source === 'local' && decision.allowed)
    .toSorted((one, other) => (one.settledAtUs ?? 0) - (other.settledAtUs ?? 0))
  const spans = groupBy(
    local,
    ({ policy, subject, liveProcesses }) => `${policy} ${subject} ${liveProcesses}`,
  )
  return [...spans].flatMap(([span, found]) => {
    const [{ policy, liveProcesses }] = found as [CheckRecord, ...CheckRecord[]]
    return limitsOf(policy).flatMap(limit => {
      const share = shareOf(limit, liveProcesses)
      const history = found.map(({ settledAtUs, cost }) => ({
        atUs: settledAtUs ?? 0,
        cost: Math.min(cost, share.limit),
      }))
      return checkBounds(share, history)
        .filter(({ promise, worst, bound }) => promise !== 'aligned window' && worst > bound + 1e-6)
        .map(
          ({ worst, bound }) => `${host.name} admitted ${worst} of ${span} by itself; its share is ${bound}`,
        )
    })
  })
}

/** While the breaker is open, requests that begin do not reach for Redis. */
function leavesAnOpenNodeAlone({ host, checks, sent, events }: SimulatedProcess): string[] {
  const changes = events.flatMap(({ event, atUs }) =>
    event.type === 'breaker' ? [{ closed: event.state === 'closed', atUs }] : [],
  )
  const startedAt = new Map(checks.map(({ id, startedAtUs }) => [id, startedAtUs]))
  return sent.flatMap(({ call, atUs }) => {
    const startedAtUs = startedAt.get(call.checkId ?? -1)
    if (startedAtUs === undefined || call.script !== 'decide' || isProbe(String(call.keys[0]))) return []
    const before = changes.findLast(change => change.atUs < startedAtUs)
    const after = changes.find(change => change.atUs >= startedAtUs && change.atUs <= atUs)
    const open = before !== undefined && !before.closed && after === undefined
    return open ? [`#${call.checkId} of ${host.name} was sent while the breaker was open`] : []
  })
}

function limitsOf(policy: CheckRecord['policy']): readonly Limit[] {
  const limits: Limit | readonly Limit[] = POLICIES[policy]
  return 'algorithm' in limits ? [limits] : limits
}

function groupBy<Item>(items: readonly Item[], nameOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const group = groups.get(nameOf(item))
    if (group === undefined) groups.set(nameOf(item), [item])
    else group.push(item)
  }
  return groups
}

function isProbe(key: string): boolean {
  return key.endsWith(':probe')
}
