/**
 * While Redis is away, the processes that have heard of each other together admit no more than the limit, whatever
 * happened to the count: lost heartbeats, processes that were silent for a while, ended, or took over.
 */
import { checkBounds } from '../redis-proofs/bounds.ts'
import { groupBy } from './group-by.ts'
import { limitsInForce } from './policies.ts'
import type { CheckRecord, SimulatedProcess } from './simulated-process.ts'
import type { HeardBeat } from './simulated-redis.ts'

/** Since when a process had heard of how many others, and who they are. */
interface Knowledge {
  readonly atUs: number
  readonly processes: ReadonlySet<string>
}

/**
 * A process divides the limits among all processes that Redis knew when it last reported, and had not forgotten.
 */
export function countsWhoWasHeard(
  processes: readonly SimulatedProcess[],
  beats: readonly HeardBeat[],
): string[] {
  return processes.flatMap(process => {
    const known = knowledgeOf(process, beats)
    return process.checks.filter(isLocal).flatMap(({ id, settledAtUs, sharedAmong }) => {
      const least = Math.max(1, ...known.filter(isBefore(settledAtUs)).map(each => each.processes.size))
      if (sharedAmong >= least) return []
      return [`#${id} of ${process.host.name} divides by ${sharedAmong}; it has heard of ${least} processes`]
    })
  })
}

/** Processes that have all heard of each other admit together no more than the whole limit allows. */
export function sharesAddUp(processes: readonly SimulatedProcess[], beats: readonly HeardBeat[]): string[] {
  const known = new Map(processes.map(process => [process, knowledgeOf(process, beats)]))
  const admitted = processes.flatMap(({ checks }) =>
    checks.filter(check => isLocal(check) && check.how === 'check' && check.decision?.allowed),
  )
  return [...groupBy(admitted, ({ policy, subject }) => `${policy} ${subject}`)].flatMap(([which, found]) => {
    const all = new Set(found.map(({ process }) => process.host.name))
    const informed = found
      .filter(({ process, settledAtUs }) =>
        known
          .get(process)
          ?.some(each => isBefore(settledAtUs)(each) && [...all].every(name => each.processes.has(name))),
      )
      .toSorted((one, other) => (one.settledAtUs ?? 0) - (other.settledAtUs ?? 0))
    const [first] = informed
    if (first === undefined) return []
    return limitsInForce(first.policy).flatMap(limit => {
      // A cost above the share takes the share and leaves a debt.
      const most = Math.floor(limit.limit / all.size)
      const history = informed.map(({ settledAtUs, cost }) => ({
        atUs: settledAtUs ?? 0,
        cost: Math.min(cost, most),
      }))
      return checkBounds(limit, history)
        .filter(({ promise, worst, bound }) => promise !== 'aligned window' && worst > bound + 1e-6)
        .map(
          ({ worst, bound }) => `${all.size} processes admitted ${worst} of ${which}; the limit is ${bound}`,
        )
    })
  })
}

function isLocal({ decision }: CheckRecord): boolean {
  return decision?.source === 'local'
}

function isBefore(atUs: number | null): (known: Knowledge) => boolean {
  return known => known.atUs <= (atUs ?? 0)
}

function knowledgeOf({ host, connection }: SimulatedProcess, beats: readonly HeardBeat[]): Knowledge[] {
  return connection.beatsAnswered.flatMap(({ atUs, serverUs }) => {
    const order = beats.findIndex(beat => beat.process === host.name && beat.serverUs === serverUs)
    const answered = beats[order]
    if (answered === undefined) return []
    const earlier = beats
      .slice(0, order + 1)
      .filter(
        ({ clockEpoch, lostAtUs }) =>
          clockEpoch === answered.clockEpoch && (lostAtUs === null || lostAtUs > answered.trueUs),
      )
    return [{ atUs, processes: new Set(earlier.map(({ process }) => process)) }]
  })
}
