/** The faults of a run: their kinds, beginnings and ends, all chosen by the dice. */
import type { Dice } from './dice.ts'
import type { History } from './history.ts'
import type { Shape } from './policies.ts'
import { CALM, type Conditions } from './simulated-network.ts'
import type { SimulatedProcess } from './simulated-process.ts'
import type { SimulatedRedis } from './simulated-redis.ts'
import type { VirtualTime } from './virtual-time.ts'

export interface Fleet {
  /** Those that live and have not been told to end. */
  processes(): readonly SimulatedProcess[]
  startAnother(): void
}

export interface Site {
  readonly time: VirtualTime
  readonly redis: SimulatedRedis
  readonly conditions: Conditions
  readonly fleet: Fleet
  readonly history: History
  readonly dice: Dice
  readonly shape: Shape
}

const REFUSALS = [
  'LOADING Redis is loading the dataset in memory',
  "READONLY You can't write against a read only replica.",
  'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
  "OOM command not allowed when used memory > 'maxmemory'.",
  'CLUSTERDOWN The cluster is down',
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  'NOREPLICAS Not enough good replicas to write.',
  'MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist to disk.',
  'TRYAGAIN Multiple keys request during rehashing of slot',
] as const

/** Starts a fault and returns a function that ends it, if it does not end by itself. */
type Fault = (site: Site, untilUs: number) => (() => void) | undefined

const FAULTS: Readonly<Record<string, Fault>> = {
  lossy({ conditions, dice }) {
    conditions.loseRequest = dice.between(0, 0.5)
    conditions.loseReply = dice.between(0, 0.5)
    return () => Object.assign(conditions, CALM)
  },
  slow({ conditions, dice }) {
    conditions.latencyUs = dice.between(2_000, 60_000)
    return () => Object.assign(conditions, CALM)
  },
  reordering({ conditions, dice }) {
    conditions.straggling = dice.between(0.05, 0.6)
    return () => Object.assign(conditions, CALM)
  },
  rejecting({ redis, dice }) {
    redis.rejection = dice.pick(REFUSALS)
    return () => {
      redis.rejection = null
    }
  },
  frozen({ conditions }, untilUs) {
    conditions.frozenUntilUs = untilUs
    return undefined
  },
  partition({ conditions, fleet, dice }) {
    const cut = fleet.processes().filter(() => dice.chance(0.5))
    for (const { host } of cut) conditions.cutOff.add(host.name)
    return () => {
      for (const { host } of cut) conditions.cutOff.delete(host.name)
    }
  },
  failover({ redis, fleet, history, dice }) {
    const lost = redis.failOver(dice.wait(200_000))
    if (dice.chance(0.5)) redis.stepClock(Math.round(dice.between(-50_000, 50_000)))
    history.write('redis', () => `fails over and forgets ${lost} calls`)
    for (const process of fleet.processes()) process.connection.reset()
    return undefined
  },
  restartEmpty({ redis, fleet }) {
    redis.failOver(Number.POSITIVE_INFINITY)
    redis.rejection = REFUSALS[0]
    for (const process of fleet.processes()) process.connection.reset()
    return () => {
      redis.rejection = null
    }
  },
  scriptFlush({ redis }) {
    redis.forgetScripts()
    return undefined
  },
  serverClock({ redis, history, dice }) {
    const byUs = Math.round(dice.pick([-1, 1]) * dice.wait(2_000_000))
    redis.stepClock(byUs)
    history.write('redis', () => `clock steps by ${byUs} us`)
    return undefined
  },
  wallClock({ fleet, dice }) {
    anyOf(fleet, dice)?.stepWallClock(dice.whole(-3_600_000, 3_600_000))
    return undefined
  },
  stall({ time, fleet, dice }, untilUs) {
    anyOf(fleet, dice)?.stall(Math.min(untilUs - time.nowUs(), dice.whole(5_000, 400_000)))
    return undefined
  },
  reset({ fleet, dice }) {
    anyOf(fleet, dice)?.connection.reset()
    return undefined
  },
  crash({ fleet, dice }) {
    anyOf(fleet, dice)?.crash()
    return () => fleet.startAnother()
  },
  poison({ redis }) {
    const keys = redis.records.map(({ key }) => key)
    redis.poisonedKeys = new Set(keys.slice(-1))
    return () => {
      redis.poisonedKeys = new Set()
    }
  },
}

/** Faults that concern leases: a process dies with one, is told to end with one, or wakes when its time is over. */
const WITH_LEASES: Readonly<Record<string, Fault>> = {
  crashHolding({ fleet }, untilUs) {
    nextHolding(fleet, untilUs, process => process.crash())
    return () => fleet.startAnother()
  },
  leaveHolding({ fleet }, untilUs) {
    nextHolding(fleet, untilUs, process => process.leave())
    return () => fleet.startAnother()
  },
  stallHolding({ time, fleet }, untilUs) {
    nextHolding(fleet, untilUs, process => process.stall(untilUs - time.nowUs()))
    return undefined
  },
  leave({ fleet, dice }) {
    anyOf(fleet, dice)?.leave()
    return () => fleet.startAnother()
  },
}

/** Makes faults until then; each seed draws only from some kinds, so that rare ones are also seen alone. */
export function makeWeather(site: Site, untilUs: number): void {
  const { time, history, dice } = site
  const special = site.shape.leased.length > 0 ? WITH_LEASES : {}
  const faults = { ...FAULTS, ...special }
  const kinds = Object.keys(faults).filter(kind => dice.chance(kind in special ? 0.7 : 0.4))
  const meanGapUs = dice.between(60_000, 600_000)
  history.write('', () => `faults: ${kinds.join(', ') || 'none'}`)

  function next(): void {
    const gapUs = dice.wait(meanGapUs)
    if (kinds.length === 0 || time.nowUs() + gapUs >= untilUs) return
    time.after(gapUs, 'message', null, () => {
      const kind = dice.pick(kinds as [string, ...string[]])
      const endUs = Math.min(untilUs, Math.ceil(time.nowUs() + dice.wait(400_000)))
      history.write('', () => `${kind} until ${(endUs / 1000).toFixed(3)}`)
      const end = faults[kind]?.(site, endUs)
      if (end !== undefined) time.after(endUs - time.nowUs(), 'message', null, end)
      next()
    })
  }
  next()
}

/** Ends all faults; a connection on which something was lost breaks. */
export function endFaults({ redis, conditions, fleet, history }: Site): void {
  Object.assign(conditions, CALM, { frozenUntilUs: 0 })
  conditions.cutOff.clear()
  redis.rejection = null
  redis.poisonedKeys = new Set()
  for (const { connection } of fleet.processes()) connection.heal()
  history.write('', () => 'the faults are over')
}

export function anyOf(fleet: Fleet, dice: Dice): SimulatedProcess | undefined {
  const processes = fleet.processes()
  return processes.length === 0
    ? undefined
    : dice.pick(processes as [SimulatedProcess, ...SimulatedProcess[]])
}

function nextHolding(fleet: Fleet, untilUs: number, work: (process: SimulatedProcess) => void): void {
  let done = false
  for (const process of fleet.processes()) {
    process.whenHolding(untilUs, () => {
      if (!done) work(process)
      done = true
    })
  }
}
