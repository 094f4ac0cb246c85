import { createDice } from './dice.ts'
import { createHistory, noHistory } from './history.ts'
import { lastingProblems, lastingRecoveryProblems } from './lasting-laws.ts'
import { recoveryProblems, safetyProblems } from './laws.ts'
import { givesBackWhatIsLeft, isGivenTheWhole, untouchedFromUs } from './lease-laws.ts'
import { accountsOf } from './ledger.ts'
import { createLoad, LEASED_SUBJECTS } from './load.ts'
import { comeAndGo, OUTAGE_US } from './outage.ts'
import { isAttributable, limitsInForce, rollShape, type Shape } from './policies.ts'
import { CALM, type Conditions } from './simulated-network.ts'
import {
  type CheckRecord,
  DEADLINE_MS,
  PROBE_AFTER_MS,
  type ProcessParts,
  type SimulatedProcess,
  startProcess,
} from './simulated-process.ts'
import { SimulatedRedis } from './simulated-redis.ts'
import { tallyOf } from './tally.ts'
import { createVirtualTime } from './virtual-time.ts'
import { endFaults, makeWeather } from './weather.ts'
import { type Wiring, wireStore } from './wiring.ts'

/**
 * `safety`: faults to the end, and nothing that must never happen has happened.
 * `liveness`: the faults stop, and everything is well again within the time that is promised.
 * `outage`: as `safety`, for longer: Redis comes and goes, processes do, and then it is gone for good.
 */
export type Mode = 'safety' | 'liveness' | 'outage'

export interface Run {
  readonly seed: number
  readonly mode: Mode
  /** Empty if it was not recorded. */
  readonly history: string
  readonly problems: readonly string[]
  /** Counts of the events in the run, to see whether it was worth running. */
  readonly tally: Readonly<Record<string, number>>
}

const FAULTS_US = { safety: 2_500_000, liveness: 1_500_000, outage: OUTAGE_US } as const
/** The last call fails at its deadline, late timers included; then a probe within its delay; then a round trip. */
const RECOVERED_AFTER_US = (DEADLINE_MS + 10 + PROBE_AFTER_MS + 1 + 3 + 10) * 1000
/** How long requests continue after that, to see who decides them. */
const LOAD_AFTER_US = 500_000
/**
 * Long enough for the dead to be missed: three seconds, as much again if the clock stepped back, and a heartbeat.
 */
const CALM_US = 7_500_000
const CLOSED_AFTER_US = 1_000_000

export interface SimulationOptions {
  /** Keep the history, to be read or compared. */
  readonly recorded?: boolean
  readonly wiring?: Wiring
  /** Default: the seed decides. */
  readonly shape?: Shape
  /** How far the wall clocks of the processes are off. */
  readonly wallOffsetMs?: number
}

export async function simulate(seed: number, mode: Mode, options: SimulationOptions = {}): Promise<Run> {
  const wiring = options.wiring ?? wireStore
  const time = createVirtualTime()
  const history = options.recorded ? createHistory(time.nowUs) : noHistory
  const dice = createDice(seed)
  const shape = options.shape ?? rollShape(dice.fork('shape'))
  const redis = new SimulatedRedis(time.nowUs)
  const conditions: Conditions = { ...CALM, cutOff: new Set(), frozenUntilUs: 0 }
  const all: SimulatedProcess[] = []
  let checks = 0
  const parts: ProcessParts = {
    time,
    redis,
    conditions,
    history,
    dice,
    wiring,
    shape,
    attributable: isAttributable(shape),
    load: createLoad(dice, shape),
    wallOffsetMs: options.wallOffsetMs ?? 0,
    nextCheckId: () => ++checks,
  }
  const fleet = {
    processes: () => all.filter(({ host, left }) => !host.dead && left === null),
    startAnother: () => void all.push(startProcess(`p${all.length + 1}`, parts)),
  }
  const unhandled: unknown[] = []
  const onUnhandled = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', onUnhandled)
  history.write('', () => `requests: ${JSON.stringify(shape)}`)
  try {
    const least = mode === 'outage' ? 2 : 1
    for (let count = dice.whole(least, 4); count > 0; count--) fleet.startAnother()
    const site = { time, redis, conditions, fleet, history, shape, dice: dice.fork('weather') }
    if (mode === 'outage') comeAndGo(site)
    else makeWeather(site, FAULTS_US[mode])
    await time.runUntil(FAULTS_US[mode])
    const problems: string[] = []
    const overUs = time.nowUs()
    const recoveredUs = overUs + RECOVERED_AFTER_US
    if (mode === 'liveness') {
      endFaults(site)
      for (const each of fleet.processes()) each.stopResets()
      await time.runUntil(recoveredUs + LOAD_AFTER_US / 2)
      const stopUs = recoveredUs + LOAD_AFTER_US
      for (const each of fleet.processes().slice(1))
        if (dice.chance(0.5)) each.whenHolding(stopUs, each.leave)
      await time.runUntil(stopUs)
      for (const each of fleet.processes()) each.stopLoad()
      problems.push(...(await askForEverything()).flatMap(isGivenTheWhole))
      await time.runUntil(Math.max(time.nowUs(), overUs + CALM_US))
      // Not in the middle of a heartbeat.
      for (let step = 0; step < 20 && fleet.processes().some(isOwed); step++) {
        await time.runUntil(time.nowUs() + 5_000)
      }
      problems.push(...recoveryProblems(fleet.processes(), recoveredUs))
    }
    for (const each of fleet.processes()) each.leave()
    await time.runUntil(time.nowUs() + CLOSED_AFTER_US)
    const accounts = accountsOf(all, redis.records)
    problems.push(...safetyProblems(shape, all, redis, accounts))
    problems.push(...lastingProblems(all, redis.lasting))
    if (mode === 'liveness') {
      problems.push(...givesBackWhatIsLeft(accounts, recoveredUs))
      problems.push(...lastingRecoveryProblems(all, redis.lasting, recoveredUs))
    }
    for (const each of all.filter(({ host }) => !host.dead)) {
      const timers = time.waiting(each.host, 'timer')
      if (timers > 0) problems.push(`${each.host.name} is closed and still has ${timers} timers`)
    }
    problems.push(...unhandled.map(error => `unhandled: ${error}`))
    return { seed, mode, history: history.lines.join('\n'), problems, tally: tallyOf(all, redis, accounts) }
  } finally {
    process.off('unhandledRejection', onUnhandled)
  }

  /** Asks for the whole of each leased limit, when nothing of it counts any more. */
  async function askForEverything(): Promise<CheckRecord[]> {
    const asked: CheckRecord[] = []
    for (const policy of shape.leased) {
      for (const subject of LEASED_SUBJECTS) {
        const leftUs = () => redis.untilServerUs(untouchedFromUs(redis.records, policy, subject))
        // A straggler may still be in flight.
        for (let us = leftUs(); us > 0; us = leftUs()) await time.runUntil(time.nowUs() + us)
        const cost = Math.min(...limitsInForce(policy).map(({ limit }) => limit))
        const [asker] = fleet.processes()
        const record = asker?.ask({ policy, subject, cost, mode: undefined, how: 'check' })
        if (record !== undefined) asked.push(record)
        await time.runUntil(time.nowUs() + DEADLINE_MS * 1000)
      }
    }
    return asked
  }
}

function isOwed({ connection }: SimulatedProcess): boolean {
  return connection.unanswered() > 0
}
