/**
 * One process of the simulated fleet: the real limiter and store, in a world of virtual time, under a random load.
 */
import type { Decision } from '../../src/decision/decision.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import type { StoreEvent } from '../../src/store/remote/store-event.ts'
import { type LastingRecord, startLasting } from './lasting-load.ts'
import type { Asked, Load } from './load.ts'
import { leaseOf, POLICIES, type Shape } from './policies.ts'
import {
  connect,
  type NetworkParts,
  presentCheck,
  type SentAs,
  type SimulatedConnection,
} from './simulated-network.ts'
import type { ServerCall } from './simulated-redis.ts'
import { createWorld } from './simulated-world.ts'
import type { Host } from './virtual-time.ts'
import type { Wiring } from './wiring.ts'

const SILENT = { info() {}, warn() {}, error() {} }

export const DEADLINE_MS = 30
/** How long the first requests of a process wait for its connection. */
export const CONNECT_TIMEOUT_MS = 100
export const PROBE_AFTER_MS = 500
/** Leases are small until a few have been spent. */
const LEASED_IN_A_ROW = 4

/** One request and its outcome. */
export interface CheckRecord extends Asked {
  readonly id: number
  readonly process: SimulatedProcess
  readonly startedAtUs: number
  settledAtUs: number | null
  decision: Decision | null
  error: unknown
  /** Among how many processes this one divided the limits when it decided by itself. */
  sharedAmong: number
  refundAsked: number
}

export interface Stall {
  readonly fromUs: number
  readonly untilUs: number
}

export interface SimulatedProcess {
  readonly host: Host
  readonly startedAtUs: number
  readonly connection: SimulatedConnection
  readonly checks: readonly CheckRecord[]
  /** Long-running requests; empty if the run has none. */
  readonly lasting: readonly LastingRecord[]
  readonly stalls: readonly Stall[]
  readonly sent: readonly SentCall[]
  readonly events: readonly { readonly event: StoreEvent; readonly atUs: number }[]
  breakers(): readonly string[]
  liveProcesses(): number
  stall(us: number): void
  /** Sets its wall clock, on which no decision may depend. */
  stepWallClock(byMs: number): void
  crash(): void
  /** Runs `work` when the process most likely holds leased units, if it does before then. */
  whenHolding(untilUs: number, work: () => void): void
  readonly crashedAtUs: number | null
  /** One request more, beside the load. */
  ask(asked: Asked): CheckRecord
  /** From now on nothing is reset any more: what was charged stays. */
  stopResets(): void
  stopLoad(): void
  /** Ends as a process does that is told to: with `close()`. */
  leave(): void
  /** When a process that was told to end began to close, and when it was done. */
  readonly left: { readonly fromUs: number; readonly doneUs: number | null; readonly error: unknown } | null
}

export interface SentCall {
  readonly call: ServerCall
  readonly how: SentAs
  readonly atUs: number
}

export interface ProcessParts extends NetworkParts {
  readonly wiring: Wiring
  readonly shape: Shape
  /** Whether each call can be attributed to one check. */
  readonly attributable: boolean
  readonly load: Load
  /** How far the wall clocks of the processes are off. */
  readonly wallOffsetMs: number
  nextCheckId(): number
}

export function startProcess(name: string, parts: ProcessParts): SimulatedProcess {
  const { time, history, load } = parts
  const dice = parts.dice.fork(name)
  const host: Host = { name, stalledUntilUs: 0, dead: false }
  const checks: CheckRecord[] = []
  const stalls: Stall[] = []
  const sent: SentCall[] = []
  const events: { event: StoreEvent; atUs: number }[] = []
  let { wallOffsetMs } = parts
  let loaded = true
  let resetting = true
  let leasedInARow = 0
  let holding: { readonly untilUs: number; readonly work: () => void } | null = null
  let crashedAtUs: number | null = null
  let left: { fromUs: number; doneUs: number | null; error: unknown } | null = null

  const world = createWorld(host, { time, dice, wallOffsetMs: () => wallOffsetMs })
  const connection = connect(host, { ...parts, dice: dice.fork('network') }, (call, how) => {
    sent.push({ call, how, atUs: time.nowUs() })
  })
  const write = (_fields: object, line: string): void => history.write(name, () => `logs: ${line}`)
  const store = parts.wiring(world, connection, {
    deadlineMs: DEADLINE_MS,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    probeAfterMs: PROBE_AFTER_MS,
    batch: parts.shape.batch,
    logger: { info: write, warn: write, error: write },
    onWarning: ({ code }) => history.write(name, () => code),
    onEvent(event) {
      events.push({ event, atUs: time.nowUs() })
      if (event.type === 'breaker') history.write(name, () => `breaker ${event.state}`)
    },
  })
  const limiter = createLimiter({
    store,
    logger: SILENT,
    clock: world.clock,
    timers: world.timers,
    policies: POLICIES,
  })
  const lasting = parts.shape.lasting
    ? startLasting({
        time,
        history,
        host,
        limiter,
        dice: dice.fork('lasting'),
        isLoaded: () => loaded,
      })
    : []

  function request(asked: Asked): CheckRecord {
    const record: CheckRecord = {
      ...asked,
      id: parts.nextCheckId(),
      process,
      startedAtUs: time.nowUs(),
      settledAtUs: null,
      decision: null,
      error: null,
      sharedAmong: 1,
      refundAsked: 0,
    }
    checks.push(record)
    if (parts.attributable) presentCheck.run(record.id, () => void decide(record))
    else void decide(record)
    return record
  }

  async function decide(record: CheckRecord): Promise<void> {
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
    if (record.decision?.source === 'local') record.sharedAmong = store.health().sharedAmong
    noteLease(record)
    if (how === 'check' && record.decision?.allowed && dice.chance(0.1)) await refund(record)
  }

  function noteLease({ policy, how, decision }: CheckRecord): void {
    if (leaseOf(policy) === null || how === 'peek') return
    leasedInARow = decision?.leased ? leasedInARow + 1 : 0
    if (leasedInARow < LEASED_IN_A_ROW || holding === null || left !== null) return
    if (time.nowUs() < holding.untilUs) time.after(0, 'message', host, holding.work)
    holding = null
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

  async function reset({ policy, subject }: Asked): Promise<void> {
    try {
      await limiter.reset(subject, { policy })
      history.write(name, () => `reset ${policy} ${subject}`)
    } catch (error) {
      // Whether it was forgotten is unknown; the caller gets the error.
      history.write(name, () => `reset ${policy} ${subject}: ${error}`)
    }
  }

  function nextRequest(): void {
    time.after(dice.wait(load.gapUs) + load.restUs(dice), 'request', host, () => {
      if (!loaded) return
      // Requests also come in bursts.
      const burst = dice.chance(0.1) ? dice.whole(2, 6) : 1
      for (let one = 0; one < burst; one++) request(load.next(dice))
      if (load.resets(dice) && resetting) void reset(load.next(dice))
      nextRequest()
    })
  }

  async function close(): Promise<void> {
    const closing = { fromUs: time.nowUs(), doneUs: null as number | null, error: null as unknown }
    left = closing
    history.write(name, () => 'closes')
    try {
      await limiter.close()
    } catch (error) {
      closing.error = error
    }
    closing.doneUs = time.nowUs()
    history.write(name, () => 'is closed')
  }

  const process: SimulatedProcess = {
    host,
    startedAtUs: time.nowUs(),
    connection,
    checks,
    lasting,
    stalls,
    sent,
    events,
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
    get crashedAtUs() {
      return crashedAtUs
    },
    get left() {
      return left
    },
    crash() {
      host.dead = true
      crashedAtUs = time.nowUs()
      history.write(name, () => 'crashes')
    },
    stopLoad() {
      loaded = false
    },
    whenHolding(untilUs, work) {
      holding = { untilUs, work }
    },
    ask: request,
    stopResets() {
      resetting = false
    },
    leave() {
      loaded = false
      void close()
    },
  }
  history.write(name, () => 'starts')
  nextRequest()
  return process
}

function inWords({ allowed, source, leased, remaining, retryAfterMs }: Decision): string {
  const lease = leased ? ' from a lease' : ''
  return `${allowed ? 'allowed' : 'denied'} by ${source}${lease}, remaining ${remaining}, retry ${retryAfterMs} ms`
}
