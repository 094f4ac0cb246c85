import type { World } from '../../src/store/remote/remote-store.ts'
import type { Dice } from './dice.ts'
import { presentCheck } from './simulated-network.ts'
import type { Host, VirtualTime } from './virtual-time.ts'

/** A timer of Node fires up to a millisecond early by the clock that is read, and slightly late. */
const TIMER_EARLY_US = 990
const TIMER_LATE_US = 1_000
/** How long other sockets may take in the same turn of the event loop. */
const TURN_US = 200

interface WorldParts {
  readonly time: VirtualTime
  readonly dice: Dice
  /** How far the wall clock is off. */
  wallOffsetMs(): number
}

/** The clocks, timers and randomness of one process. */
export function createWorld(host: Host, { time, dice, wallOffsetMs }: WorldParts): World {
  const originUs = dice.whole(0, 1_000_000_000)
  const timerDice = dice.fork('timers')
  const turnDice = dice.fork('turns')
  const wait = (ms: number, work: () => void): (() => void) => {
    const us = Math.max(1, Math.trunc(ms)) * 1000 + timerDice.between(-TIMER_EARLY_US, TIMER_LATE_US)
    const checkId = presentCheck.getStore()
    const onTime = checkId === undefined ? work : () => presentCheck.run(checkId, work)
    return time.after(us, 'timer', host, onTime)
  }
  return {
    clock: {
      nowUs: () => originUs + time.nowUs(),
      unixMs: () => 1_800_000_000_000 + Math.floor(time.nowUs() / 1000) + wallOffsetMs(),
    },
    timers: {
      after: wait,
      inBackground: wait,
      afterThisTurn: work => void time.after(turnDice.between(0, TURN_US), 'turn', host, work),
    },
    random: dice.fork('store').roll,
    // Scripts that are made at run time decide as decide.lua does (test/equivalence), the only one the simulated Redis knows.
    sha1: null,
  }
}
