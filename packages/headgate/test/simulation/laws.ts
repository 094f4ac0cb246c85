/** The laws of every run, whatever the faults were. Each returns the ways in which it was broken. */
import { keepsItsShare, keepsTheBounds, leasesAddNothing } from './bound-laws.ts'
import {
  chargesOnce,
  chargesWhoAsked,
  givesNothingToANewLife,
  refundsOnlyWhatWasAsked,
} from './charge-laws.ts'
import { countsWhoWasHeard, sharesAddUp } from './fleet-laws.ts'
import { closesInTime, spendsInTime, spendsWhatItTook } from './lease-laws.ts'
import type { Account } from './ledger.ts'
import { isAttributable, type Shape } from './policies.ts'
import {
  type CheckRecord,
  CONNECT_TIMEOUT_MS,
  DEADLINE_MS,
  type SentCall,
  type SimulatedProcess,
} from './simulated-process.ts'
import { isProbe, type SimulatedRedis } from './simulated-redis.ts'

/** How late a timer may be, and how long a turn of the event loop may take. */
const TIMER_LATE_US = 1_000
const TURN_US = 200
/**
 * A question waits for its batch, a call for the end of its turn, and an abandoned one for the sockets to be read.
 */
const TURNS = 3
/** The latest a call leaves after the request entered: it waits for a connection, and for its turn. */
const LEAVES_WITHIN_US = (CONNECT_TIMEOUT_MS + DEADLINE_MS + 5) * 1000

/** Denials of what must never happen. */
export function safetyProblems(
  shape: Shape,
  processes: readonly SimulatedProcess[],
  { records, beats }: Pick<SimulatedRedis, 'records' | 'beats'>,
  accounts: readonly Account[],
): string[] {
  const checks = processes.flatMap(process => process.checks)
  const perCheck = isAttributable(shape)
    ? [
        ...chargesOnce(checks, records),
        ...refundsOnlyWhatWasAsked(checks, records),
        ...processes.flatMap(leavesAnOpenNodeAlone),
      ]
    : processes.flatMap(leavesAnOpenNodeSoon)
  return [
    ...perCheck,
    ...checks.flatMap(settlesInTime),
    ...checks.flatMap(isDecided),
    ...chargesWhoAsked(accounts),
    ...givesNothingToANewLife(records),
    ...accounts.flatMap(spendsWhatItTook),
    ...accounts.flatMap(spendsInTime),
    ...processes.flatMap(closesInTime),
    ...keepsTheBounds(records),
    ...leasesAddNothing(accounts, records),
    ...processes.flatMap(keepsItsShare),
    ...countsWhoWasHeard(processes, beats),
    ...sharesAddUp(processes, beats),
  ]
}

/** Denials of what must hold again some time after the last fault. */
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

/** Also from a lease, or from what is left to ask when a grant has nothing for it. */
function settlesInTime(check: CheckRecord): string[] {
  const { id, process, startedAtUs, settledAtUs } = check
  const waitUs = DEADLINE_MS * 1000 + TIMER_LATE_US + TURNS * TURN_US
  // A new process waits for its connection, and checks after every deadline whether that is still worth it.
  const connectedUs = process.startedAtUs + (CONNECT_TIMEOUT_MS + DEADLINE_MS) * 1000 + TIMER_LATE_US
  const isNew = startedAtUs < process.startedAtUs + CONNECT_TIMEOUT_MS * 1000
  let dueUs = (isNew ? connectedUs : startedAtUs) + waitUs
  for (const { fromUs, untilUs } of process.stalls) {
    // A call that had not left when the process stalled has its full time afterwards.
    const hadLeft = fromUs > startedAtUs + TURNS * TURN_US
    const overlaps = fromUs <= dueUs && untilUs > startedAtUs
    if (overlaps) dueUs = Math.max(dueUs, untilUs + (hadLeft ? TIMER_LATE_US + TURN_US : waitUs))
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

/** While the breaker is open, requests that begin do not try Redis. */
function leavesAnOpenNodeAlone(process: SimulatedProcess): string[] {
  const startedAt = new Map(process.checks.map(({ id, startedAtUs }) => [id, startedAtUs]))
  return process.sent.flatMap(({ call, atUs }) => {
    const startedAtUs = startedAt.get(call.checkId ?? -1)
    if (startedAtUs === undefined || !isQuestion(call)) return []
    const openUs = openSinceUs(process, startedAtUs)
    const isOpen = openUs !== null && openSinceUs(process, atUs + 1) === openUs
    return isOpen ? [`#${call.checkId} of ${process.host.name} was sent while the breaker was open`] : []
  })
}

/** The same where a call serves several: once it has been open for longer than a request may take to leave. */
function leavesAnOpenNodeSoon(process: SimulatedProcess): string[] {
  return process.sent.flatMap(({ call, how, atUs }) => {
    // The text of a script follows the rejection of its hash, however late that came.
    if (how === 'eval' || !isQuestion(call)) return []
    const openUs = openSinceUs(process, atUs + 1)
    if (openUs === null || atUs - openUs <= LEAVES_WITHIN_US) return []
    if (process.stalls.some(({ fromUs, untilUs }) => fromUs <= atUs && untilUs >= openUs)) return []
    return [`${process.host.name} asked while the breaker had been open for ${(atUs - openUs) / 1000} ms`]
  })
}

function isQuestion({ script, keys }: SentCall['call']): boolean {
  return script === 'decide' && !keys.every(isProbe)
}

/** Returns since when the breaker had been open just before a time; null if it was closed. */
function openSinceUs({ events }: SimulatedProcess, atUs: number): number | null {
  let sinceUs: number | null = null
  for (const { event, atUs: changedAtUs } of events) {
    if (changedAtUs >= atUs) break
    if (event.type !== 'breaker') continue
    if (event.state === 'closed') sinceUs = null
    else sinceUs ??= changedAtUs
  }
  return sinceUs
}
