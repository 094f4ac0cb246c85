/**
 * Clients of an upstream in virtual time, which leave when an answer takes too long. The upstream works on so many
 * requests at once, each for so long; the others queue, and it may not notice that a client has left.
 */
import type {
  AdaptiveConcurrency,
  ReleaseUpstream,
  UpstreamOutcome,
} from '../../src/outbound/adaptive-concurrency.js'
import type { Clock, Timers } from '../../src/time/clock.js'
import type { Phase } from './queueing-upstream.js'

export interface ImpatientRun {
  readonly phases: readonly Phase[]
  readonly untilMs: number
  /** Arrivals a second, whatever becomes of them. */
  readonly rate: number
  /** How long a client waits for its answer; each draws its own from this range. */
  readonly patienceMs: readonly [least: number, most: number]
  /** Whether clients that wait too long leave; otherwise they stay, and their answer is useless. */
  readonly leaves: boolean
  /** Whether the upstream works on requests whose client has left. */
  readonly worksForNobody: boolean
  /** How long a client waits for a permit; 0 if it is rejected at once. */
  readonly waitMs: number
  readonly limiting: (clock: Clock, timers: Timers) => AdaptiveConcurrency
  random(): number
}

export interface ImpatientOutcome {
  /** When each useful answer came, in milliseconds. */
  readonly usefulAtMs: readonly number[]
  /** The limit at every tenth of a second. */
  readonly limits: readonly number[]
}

interface Client {
  readonly atMs: number
  readonly leavesAtMs: number
  leave: ReleaseUpstream | null
  endsAtMs: number
  isGone: boolean
}

/** Plays the whole history, a millisecond at a time. */
export async function playImpatient(run: ImpatientRun): Promise<ImpatientOutcome> {
  const { phases, untilMs, rate, random } = run
  let nowMs = 0
  const timed: { atMs: number; work: () => void }[] = []
  const after = (ms: number, work: () => void) => {
    const one = { atMs: nowMs + ms, work }
    timed.push(one)
    return () => void timed.splice(timed.indexOf(one) >>> 0, 1)
  }
  const clock = { nowUs: () => nowMs * 1_000, unixMs: () => nowMs }
  const limiting = run.limiting(clock, { after, inBackground: after })
  const queue: Client[] = []
  let serving: Client[] = []
  let waiting: Client[] = []
  const usefulAtMs: number[] = []
  const limits: number[] = []

  const end = (client: Client, ended: UpstreamOutcome) => {
    client.leave?.(ended)
    client.leave = null
    waiting = waiting.filter(one => one !== client)
  }
  const arrive = async () => {
    const [least, most] = run.patienceMs
    const leavesAtMs = nowMs + least + (most - least) * random()
    const client: Client = { atMs: nowMs, leavesAtMs, leave: null, endsAtMs: 0, isGone: false }
    const leave = run.waitMs === 0 ? limiting.enter() : await limiting.acquire({ timeoutMs: run.waitMs })
    if (leave === null) return
    client.leave = leave
    queue.push(client)
    waiting.push(client)
  }

  let nextMs = 0
  for (; nowMs < untilMs; nowMs++) {
    for (const one of timed.filter(({ atMs }) => atMs <= nowMs)) {
      timed.splice(timed.indexOf(one), 1)
      one.work()
    }
    const phase = phases.findLast(({ fromMs }) => fromMs <= nowMs) as Phase
    for (const client of serving.filter(({ endsAtMs }) => endsAtMs <= nowMs)) {
      if (nowMs <= client.leavesAtMs && !client.isGone) usefulAtMs.push(nowMs)
      end(client, 'answered')
    }
    serving = serving.filter(({ endsAtMs }) => endsAtMs > nowMs)
    for (const client of run.leaves ? waiting.filter(({ leavesAtMs }) => leavesAtMs <= nowMs) : []) {
      client.isGone = true
      end(client, 'abandoned')
    }
    for (; nextMs <= nowMs; nextMs += (-Math.log(1 - random()) * 1_000) / rate) void arrive()
    await Promise.resolve()
    await Promise.resolve()
    await Promise.resolve()
    if (!run.worksForNobody) serving = serving.filter(({ isGone }) => !isGone)
    while (queue.length > 0 && serving.length < phase.workers) {
      const client = queue.shift() as Client
      if (client.isGone && !run.worksForNobody) continue
      client.endsAtMs = nowMs + phase.serviceMs * (0.8 + 0.4 * random())
      serving.push(client)
    }
    if (nowMs % 100 === 0) limits.push(limiting.limit)
  }
  return { usefulAtMs, limits }
}
