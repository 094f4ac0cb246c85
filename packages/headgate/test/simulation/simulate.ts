import { createDice } from './dice.ts'
import { createHistory, noHistory } from './history.ts'
import { recoveryProblems, safetyProblems } from './laws.ts'
import { CALM, type Conditions } from './simulated-network.ts'
import {
  DEADLINE_MS,
  PROBE_AFTER_MS,
  type ProcessParts,
  type SimulatedProcess,
  startProcess,
} from './simulated-process.ts'
import { SimulatedRedis } from './simulated-redis.ts'
import { createVirtualTime } from './virtual-time.ts'
import { endFaults, makeWeather } from './weather.ts'
import { type Wiring, wireStore } from './wiring.ts'

/**
 * `safety`: faults to the end, and nothing that must never happen has happened.
 * `liveness`: the faults stop, and everything is well again within the time that is promised.
 */
export type Mode = 'safety' | 'liveness'

export interface Run {
  readonly seed: number
  readonly mode: Mode
  /** Empty where it was not to be recorded. */
  readonly history: string
  readonly problems: readonly string[]
  /** What the run came across, to see that it is worth running. */
  readonly tally: Readonly<Record<string, number>>
}

const FAULTS_US = { safety: 2_500_000, liveness: 1_500_000 } as const
/** The last call fails at its deadline, late timers included; then a probe within its delay; then a way there and back. */
const RECOVERED_AFTER_US = (DEADLINE_MS + 10 + PROBE_AFTER_MS + 1 + 3 + 10) * 1000
/** Then requests go on for a while, to see who decides them. */
const LOAD_AFTER_US = 500_000
/** Long enough for the dead to be missed: three seconds, as much again if the clock stepped back, and a heartbeat. */
const CALM_US = 7_500_000
const CLOSED_AFTER_US = 1_000_000

export interface SimulationOptions {
  /** Keep the history, to be read or compared. */
  readonly recorded?: boolean
  readonly wiring?: Wiring
  /** How far the clocks on the processes' walls are off. */
  readonly wallOffsetMs?: number
}

export async function simulate(seed: number, mode: Mode, options: SimulationOptions = {}): Promise<Run> {
  const wiring = options.wiring ?? wireStore
  const time = createVirtualTime()
  const history = options.recorded ? createHistory(time.nowUs) : noHistory
  const dice = createDice(seed)
  const redis = new SimulatedRedis(time.nowUs)
  const conditions: Conditions = { ...CALM, cutOff: new Set(), frozenUntilUs: 0 }
  const all: SimulatedProcess[] = []
  let checks = 0
  const parts: ProcessParts = {
    ...{ time, redis, conditions, history, dice, wiring },
    gapUs: dice.between(5_000, 60_000),
    subjects: dice.whole(1, 3),
    wallOffsetMs: options.wallOffsetMs ?? 0,
    nextCheckId: () => ++checks,
  }
  const fleet = {
    processes: () => all.filter(({ host }) => !host.dead),
    startAnother: () => void all.push(startProcess(`p${all.length + 1}`, parts)),
  }
  const unhandled: unknown[] = []
  const onUnhandled = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', onUnhandled)
  try {
    for (let count = dice.whole(1, 4); count > 0; count--) fleet.startAnother()
    const site = { time, redis, conditions, fleet, history, dice: dice.fork('weather') }
    makeWeather(site, FAULTS_US[mode])
    await time.runUntil(FAULTS_US[mode])
    const problems: string[] = []
    if (mode === 'liveness') {
      endFaults(site)
      const overUs = time.nowUs()
      await time.runUntil(overUs + RECOVERED_AFTER_US + LOAD_AFTER_US)
      for (const each of fleet.processes()) each.stopLoad()
      await time.runUntil(overUs + CALM_US)
      // Not in the middle of a heartbeat.
      for (let step = 0; step < 20 && fleet.processes().some(isOwed); step++) {
        await time.runUntil(time.nowUs() + 5_000)
      }
      problems.push(...recoveryProblems(fleet.processes(), overUs + RECOVERED_AFTER_US))
    }
    for (const each of fleet.processes()) each.stopLoad()
    await Promise.all(fleet.processes().map(each => each.close()))
    await time.runUntil(time.nowUs() + CLOSED_AFTER_US)
    problems.push(...safetyProblems(all, redis.records))
    for (const each of fleet.processes()) {
      const timers = time.waiting(each.host, 'timer')
      if (timers > 0) problems.push(`${each.host.name} is closed and still has ${timers} timers`)
    }
    problems.push(...unhandled.map(error => `unhandled: ${error}`))
    return { seed, mode, history: history.lines.join('\n'), problems, tally: tallyOf(all, redis) }
  } finally {
    process.off('unhandledRejection', onUnhandled)
  }
}

function isOwed({ connection }: SimulatedProcess): boolean {
  return connection.unanswered() > 0
}

function tallyOf(processes: readonly SimulatedProcess[], redis: SimulatedRedis): Record<string, number> {
  const tally: Record<string, number> = { rewinds: redis.rewinds }
  const count = (name: string): void => {
    tally[name] = (tally[name] ?? 0) + 1
  }
  for (const process of processes) {
    count('processes')
    for (const { decision } of process.checks) {
      if (decision !== null) count(`${decision.source} ${decision.allowed ? 'allowed' : 'denied'}`)
    }
    for (const { event } of process.events) if (event.type === 'breaker') count(`breaker ${event.state}`)
  }
  return tally
}
