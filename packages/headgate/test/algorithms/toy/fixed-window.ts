/**
 * Fixed window: the units of a window that starts at a multiple of its length. A toy, because twice the limit fits around
 * the boundary of two windows; it shows all that an algorithm needs.
 *
 *   start = now − now mod window          admit when used(start) + cost ≤ limit
 */
import { type Algorithm, NEVER, NOT_CHARGED, type Outcome } from '../../../src/algorithms/algorithm.ts'
import { formatDurationUs } from '../../../src/algorithms/durations.ts'
import { counted, parseKnown, roomBeyond } from '../../../src/algorithms/limit-options.ts'
import { ObjectRows } from '../../../src/algorithms/rows.ts'
import {
  parseWindow,
  WINDOW_FIELDS,
  type WindowLimit,
  type WindowOptions,
  windowNumbers,
  windowWords,
  writtenWindow,
} from '../../../src/algorithms/window.ts'

interface FixedState {
  startUs: number
  used: number
  resetUs: number
}

const empty = (): FixedState => ({ startUs: 0, used: 0, resetUs: 0 })
const kindOf = (windowUs: number): string => `fixed-${formatDurationUs(windowUs)}`

/** A clock that stepped back stays in the last window. */
function startOf({ windowUs }: WindowLimit, state: FixedState, nowUs: number): number {
  return Math.max(state.startUs, nowUs - (nowUs % windowUs))
}

function decide(
  limit: WindowLimit,
  state: FixedState,
  units: number,
  nowUs: number,
  mayCharge: boolean,
  out: Outcome,
): void {
  const startUs = startOf(limit, state, nowUs)
  let used = state.startUs === startUs ? state.used : 0
  const fits = used + units <= limit.limit
  const restUs = startUs + limit.windowUs - nowUs
  out.waitUs = fits ? 0 : units > limit.limit ? NEVER : restUs
  out.chargedAtUs = NOT_CHARGED
  if (fits && mayCharge && units > 0) {
    used += units
    state.startUs = startUs
    state.used = used
    out.chargedAtUs = Math.max(nowUs, startUs)
  }
  out.remaining = limit.limit - used
  out.resetAfterUs = used === 0 ? 0 : restUs
}

function refund(
  limit: WindowLimit,
  state: FixedState,
  units: number,
  chargedAtUs: number | null,
  nowUs: number,
): number {
  const startUs = startOf(limit, state, nowUs)
  if (state.startUs !== startUs) return 0
  if (units < 0) {
    state.used += Math.min(-units, roomBeyond(limit, state.used))
    return 0
  }
  if (chargedAtUs !== null && (chargedAtUs < startUs || chargedAtUs <= state.resetUs)) return 0
  const back = Math.min(units, state.used)
  state.used -= back
  return back
}

const fixedWindowAlgorithm: Algorithm<WindowLimit, FixedState> = {
  name: 'fixed-window',
  fields: WINDOW_FIELDS,
  sample: { limit: 1, window: '1m' },
  parse(options) {
    const known = parseKnown<WindowOptions>(options, 'fixedWindow', Object.keys(WINDOW_FIELDS))
    const numbers = parseWindow(known)
    const naming = counted(known, kindOf(numbers.windowUs))
    return Object.freeze({ algorithm: fixedWindowAlgorithm, ...naming, ...numbers })
  },
  optionsOf: limit => writtenWindow(limit, kindOf(limit.windowUs)),
  describe: windowWords,
  ...windowNumbers,
  mostIn: (limit, intervalUs) => (intervalUs === 0 ? limit.limit : Number.POSITIVE_INFINITY),
  lease: null,
  empty,
  decide,
  refund,
  reset(_limit, state, nowUs) {
    state.used = 0
    state.resetUs = nowUs
  },
  usedUp: (limit, untilUs) => ({ startUs: untilUs - limit.windowUs, used: limit.limit, resetUs: 0 }),
  keepForUs: limit => limit.windowUs,
  isUncharged: (_limit, state) => state.used === 0,
  rows: () => new ObjectRows(empty),
  wire: {
    kind: 'fixed',
    numbers: limit => [limit.limit, limit.windowUs],
    mostLeft: limit => limit.limit,
    charged(limit, left, nowUs, out) {
      out.waitUs = 0
      out.remaining = left
      out.resetAfterUs = limit.windowUs - (nowUs % limit.windowUs)
      out.chargedAtUs = nowUs
    },
    decided(limit, [startUs, used], units, nowUs, isCharged, out) {
      decide(
        limit,
        { startUs: Number(startUs), used: Number(used), resetUs: 0 },
        units,
        nowUs,
        isCharged,
        out,
      )
    },
  },
  toJSON() {
    return this.name
  },
}

export const fixedWindow = (options: WindowOptions): WindowLimit => fixedWindowAlgorithm.parse(options)
