/** One process of the simulated fleet: the real limiter and store, in a world of virtual time, under a random load. */
import type { Decision } from '../../src/decision/decision.ts'
import { createLimiter } from '../../src/limiter.ts'
import { slidingWindowCounter, slidingWindowLog, tokenBucket } from '../../src/policy/limits.ts'
import type { GuardEvent } from '../../src/store/guard/guard-event.ts'
import type { World } from '../../src/store/redis/redis-store.ts'
import { connect, type NetworkParts, presentCheck, type SimulatedConnection } from './simulated-network.ts'
import type { ServerCall } from './simulated-redis.ts'
import type { Host } from './virtual-time.ts'
import type { Wiring } from './wiring.ts'

export const POLICIES = {
  log: slidingWindowLog({ limit: 12, window: '1s' }),
  counter: slidingWindowCounter({ limit: 20, window: '1s' }),
  buckets: slidingWindowCounter({ limit: 15, window: '1s', buckets: 10 }),
  bucket: tokenBucket({ capacity: 10, refillPerSecond: 20 }),
  both: [slidingWindowLog({ limit: 25, window: '2s' }), tokenBucket({ capacity: 12, refillPerSecond: 10 })],
} as const
export type PolicyName = keyof typeof POLICIES
const POLICY_NAMES = Object.keys(POLICIES) as [PolicyName, ...PolicyName[]]

export const DEADLINE_MS = 30
export const PROBE_AFTER_MS = 500
/** A timer of Node fires up to a millisecond early by the clock that is read, and a little late. */
const TIMER_EARLY_US = 990
const TIMER_LATE_US = 1_000

/** One request and what became of it. */
export interface CheckRecord {
  readonly id: number
  readonly process: SimulatedProcess
  readonly policy: PolicyName
  readonly subject: `user:${number}`
  readonly cost: number
  readonly mode: 'local' | 'open' | 'closed' | undefined
  readonly how: 'check' | 'peek'
  readonly startedAtUs: number
  settledAtUs: number | null
  decision: Decision | null
  error: unknown
  /** Processes this one believed in when it was decided. */
  liveProcesses: number
  refundAsked: number
}

export interface Stall {
  readonly fromUs: number
  readonly untilUs: number
}

export interface SimulatedProcess {
  readonly host: Host
  readonly connection: SimulatedConnection
  readonly checks: readonly CheckRecord[]
  readonly stalls: readonly Stall[]
  readonly sent: readonly SentCall[]
  readonly events: readonly { readonly event: GuardEvent; readonly atUs: number }[]
  breakers(): readonly string[]
  liveProcesses(): number
  stall(us: number): void
  /** The clock on its wall is set; no decision may depend on it. */
  stepWallClock(byMs: number): void
  crash(): void
  stopLoad(): void
  close(): Promise<void>
}

export interface SentCall {
  readonly call: ServerCall
  readonly atUs: number
}

export interface ProcessParts extends NetworkParts {
  readonly wiring: Wiring
  /** Mean time between the requests of a process. */
  readonly gapUs: number
  readonly subjects: number
  /** How far the clocks on the processes' walls are off. */
  readonly wallOffsetMs: number
  nextCheckId(): number
}

export function startProcess(name: string, parts: ProcessParts): SimulatedProcess {
  const { time, history } = parts
  const dice = parts.dice.fork(name)
  const host: Host = { name, stalledUntilUs: 0, dead: false }
  const checks: CheckRecord[] = []
  const stalls: Stall[] = []
  const sent: SentCall[] = []
  const events: { event: GuardEvent; atUs: number }[] = []
  let { wallOffsetMs } = parts
  let loaded = true

  const world = createWorld()
  const connection = connect(host, { ...parts, dice: dice.fork('network') }, call => {
    sent.push({ call, atUs: time.nowUs() })
  })
  const store = parts.wiring(world, connection, {
    deadlineMs: DEADLINE_MS,
    probeAfterMs: PROBE_AFTER_MS,
    onWarning: ({ code }) => history.write(name, () => code),
    onEvent(event) {
      events.push({ event, atUs: time.nowUs() })
      if (event.type === 'breaker') history.write(name, () => `breaker ${event.state}`)
    },
  })
  const limiter = createLimiter({ store, clock: world.clock, policies: POLICIES })

  function createWorld(): World {
    const originUs = dice.whole(0, 1_000_000_000)
    const timerDice = dice.fork('timers')
    const wait = (ms: number, work: () => void): (() => void) => {
      const us = Math.max(1, Math.trunc(ms)) * 1000 + timerDice.between(-TIMER_EARLY_US, TIMER_LATE_US)
      const checkId = presentCheck.getStore()
      const onTime = checkId === undefined ? work : () => presentCheck.run(checkId, work)
      return time.after(us, 'timer', host, onTime)
    }
    return {
      clock: {
        nowUs: () => originUs + time.nowUs(),
        unixMs: () => 1_800_000_000_000 + Math.floor(time.nowUs() / 1000) + wallOffsetMs,
      },
      timers: { after: wait, inBackground: wait },
      random: dice.fork('store').roll,
      log: line => history.write(name, () => `logs: ${line}`),
    }
  }

  function request(): void {
    const record: CheckRecord = {
      id: parts.nextCheckId(),
      process,
      policy: dice.pick(POLICY_NAMES),
      subject: `user:${dice.whole(1, parts.subjects)}`,
      cost: dice.chance(0.8) ? 1 : dice.whole(2, 4),
      mode: dice.chance(0.8) ? undefined : dice.pick(['local', 'open', 'closed']),
      how: dice.chance(0.92) ? 'check' : 'peek',
      startedAtUs: time.nowUs(),
      settledAtUs: null,
      decision: null,
      error: null,
      liveProcesses: 1,
      refundAsked: 0,
    }
    checks.push(record)
    presentCheck.run(record.id, () => void ask(record))
  }

  async function ask(record: CheckRecord): Promise<void> {
    const { id, policy, subject, cost, mode, how } = record
    const label = () => `#${id} ${how} ${policy} ${subject} cost ${cost}`
    try {
      record.decision = await limiter[how](subject, { policy, cost, ...(mode && { onStoreFailure: mode }) })
      const { decision } = record
      history.write(name, () => `${label()}: ${inWords(decision)}`)
    } catch (error) {
      record.error = error
      history.write(name, () => `${label()}: ${error}`)
    }
    record.settledAtUs = time.nowUs()
    record.liveProcesses = store.health().liveProcesses
    if (how === 'check' && record.decision?.allowed && dice.chance(0.1)) await refund(record)
  }

  async function refund(record: CheckRecord): Promise<void> {
    if (record.decision === null || !loaded) return
    record.refundAsked = dice.whole(1, record.cost)
    try {
      const units = await limiter.refund(record.decision, record.refundAsked)
      history.write(name, () => `#${record.id} refunds ${record.refundAsked}: ${units}`)
    } catch (error) {
      record.error = error
      history.write(name, () => `#${record.id} refunds: ${error}`)
    }
  }

  function nextRequest(): void {
    time.after(dice.wait(parts.gapUs), 'request', host, () => {
      if (!loaded) return
      // Requests come in bursts, too.
      const burst = dice.chance(0.1) ? dice.whole(2, 6) : 1
      for (let one = 0; one < burst; one++) request()
      nextRequest()
    })
  }

  const process: SimulatedProcess = {
    ...{ host, connection, checks, stalls, sent, events },
    breakers: () => Object.keys(store.health().breakers),
    liveProcesses: () => store.health().liveProcesses,
    stall(us) {
      host.stalledUntilUs = time.nowUs() + us
      stalls.push({ fromUs: time.nowUs(), untilUs: host.stalledUntilUs })
      history.write(name, () => `stalls for ${us / 1000} ms`)
    },
    stepWallClock(byMs) {
      wallOffsetMs += byMs
      history.write(name, () => `wall clock steps by ${byMs} ms`)
    },
    crash() {
      host.dead = true
      history.write(name, () => 'crashes')
    },
    stopLoad() {
      loaded = false
    },
    close: () => limiter.close(),
  }
  history.write(name, () => 'starts')
  nextRequest()
  return process
}

function inWords({ allowed, source, remaining, retryAfterMs }: Decision): string {
  return `${allowed ? 'allowed' : 'denied'} by ${source}, remaining ${remaining}, retry ${retryAfterMs} ms`
}
