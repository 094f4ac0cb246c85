import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Breaker, type BreakerState, createBreaker, type Evidence, type Pass } from './breaker.js'

const OPTIONS = { failures: 5, silenceMs: 100, probeAfterMs: 500, quickMs: 15 }
const CALM_MS = 10_000

/** The breaker's specification, written plainly: a list of everything that happened in this generation. */
interface Model {
  nowMs: number
  state: BreakerState
  /** When the calls that failed in a row were made, the earliest first. */
  failedInARow: number[]
  lastFailedAtMs: number
  /** Calls answered in this generation. */
  answers: number
  /** The call let through to a suspect node. */
  trial: Pass | null
  /** When each call was made, and how many had been answered before it. */
  made: Map<Pass, { readonly atMs: number; readonly answers: number }>
  current: Set<Pass>
  stale: Set<Pass>
  openedAtMs: number
  closings: number[]
  /** Whether it opened soon after the last closing. */
  relapsed: boolean
}

type Real = { breaker: Breaker; changes: BreakerState[] }
type Command = fc.Command<Model, Real>

function changeTo(model: Model, state: BreakerState): void {
  model.state = state
  model.failedInARow = []
  model.trial = null
  for (const pass of model.current) model.stale.add(pass)
  model.current.clear()
}

function command(name: string, run: (model: Model, real: Real) => void): Command {
  return { check: () => true, run: (model, real) => agree(model, real, run), toString: () => name }
}

function agree(model: Model, real: Real, run: (model: Model, real: Real) => void): void {
  run(model, real)
  expect(real.breaker.state).toBe(model.state)
  const probes = [...model.current].filter(pass => pass.probe)
  expect(probes.length).toBe(model.state === 'half-open' ? 1 : 0)
}

const sinceClosingMs = ({ nowMs, closings }: Model): number => nowMs - (closings.at(-1) ?? -CALM_MS)

/** A slow answer closes it too, but not twice in ten seconds. */
function settleProbe(model: Model, tookMs: number): void {
  const tooSoon = model.relapsed && tookMs > OPTIONS.quickMs && sinceClosingMs(model) < CALM_MS
  if (tooSoon) model.openedAtMs = model.nowMs
  else model.closings.push(model.nowMs)
  changeTo(model, tooSoon ? 'open' : 'closed')
}

/** Whether this failure opens it: the fifth in a row, and of a silence that has lasted. */
function isEvidence(model: Model, pass: Pass, silent: boolean): boolean {
  const { atMs, answers } = model.made.get(pass) as { atMs: number; answers: number }
  if (silent && model.answers > answers) return false
  model.failedInARow.push(atMs)
  model.lastFailedAtMs = model.nowMs
  const sinceMs = model.failedInARow[0] as number
  const hasLasted = model.nowMs - sinceMs >= OPTIONS.silenceMs
  return model.failedInARow.length >= OPTIONS.failures && (!silent || hasLasted)
}

const wait = fc.oneof(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 4_000, max: 11_000 })).map(ms =>
  command(`wait ${ms}`, model => {
    model.nowMs += ms
  }),
)
const call = fc.constant(
  command('call', (model, { breaker }) => {
    const isSuspect =
      model.failedInARow.length >= OPTIONS.failures && model.nowMs - model.lastFailedAtMs < OPTIONS.silenceMs
    const pass = breaker.enter(model.nowMs)
    expect(pass !== null).toBe(model.state === 'closed' && !(isSuspect && model.trial !== null))
    if (pass === null) return
    if (isSuspect) model.trial = pass
    model.made.set(pass, { atMs: model.nowMs, answers: model.answers })
    model.current.add(pass)
  }),
)
const probe = fc.boolean().map(early =>
  command(early ? 'early probe' : 'probe', (model, { breaker }) => {
    const waitedMs = model.nowMs - model.openedAtMs
    const pass = breaker.enterProbe(model.nowMs, early)
    if (model.state !== 'open' || (waitedMs < OPTIONS.probeAfterMs / 2 && !early)) expect(pass).toBeNull()
    if (model.state === 'open' && (waitedMs >= OPTIONS.probeAfterMs || early)) expect(pass).not.toBeNull()
    if (pass === null) return
    changeTo(model, 'half-open')
    model.current.add(pass)
  }),
)
const settle = fc
  .record({
    which: fc.nat(),
    ok: fc.boolean(),
    late: fc.boolean(),
    tookMs: fc.constantFrom(2, 28),
    silent: fc.boolean(),
  })
  .map(({ which, ok, late, tookMs, silent }) =>
    command(
      `${late ? 'late ' : ''}${ok ? `success in ${tookMs} ms` : silent ? 'silence' : 'rejection'} ${which}`,
      (model, real) => {
        const { breaker } = real
        const from = late ? model.stale : model.current
        const pass = [...from][which % Math.max(1, from.size)]
        if (pass === undefined) return
        from.delete(pass)
        if (ok && pass.probe) breaker.probeSucceeded(pass, model.nowMs, tookMs)
        else if (ok) breaker.succeeded(pass)
        else breaker.failed(pass, model.nowMs, silent ? 'silent' : 'rejected')
        if (late) return
        if (pass === model.trial) model.trial = null
        if (ok) {
          model.answers++
          model.failedInARow = []
          model.trial = null
          if (model.state === 'half-open') settleProbe(model, tookMs)
        } else if (model.state === 'half-open' || isEvidence(model, pass, silent)) {
          if (model.state === 'closed') model.relapsed = sinceClosingMs(model) < CALM_MS
          model.openedAtMs = model.nowMs
          changeTo(model, 'open')
        }
      },
    ),
  )

describe('the breaker', () => {
  it('the breaker is its model: one probe at a time, late outcomes change nothing', {
    timeout: 60_000,
  }, () => {
    fc.assert(
      fc.property(
        fc.commands([wait, call, call, settle, settle, settle, probe], { maxCommands: 80 }),
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        (commands, random) => {
          const changes: BreakerState[] = []
          const breaker = createBreaker(
            OPTIONS,
            () => random.next().value,
            state => changes.push(state),
          )
          const model: Model = {
            nowMs: 0,
            state: 'closed',
            failedInARow: [],
            lastFailedAtMs: 0,
            answers: 0,
            trial: null,
            made: new Map(),
            current: new Set(),
            stale: new Set(),
            openedAtMs: 0,
            closings: [],
            relapsed: false,
          }
          fc.modelRun(() => ({ model, real: { breaker, changes } }), commands)
        },
      ),
      { numRuns: 10_000 },
    )
  })

  it('the breaker opens after five failures in a row, not after five failures', () => {
    const breaker = createBreaker(OPTIONS, () => 1)
    const fail = (): void => breaker.failed(breaker.enter(0) as Pass, 0, 'rejected')
    for (let time = 0; time < 4; time++) fail()
    breaker.succeeded(breaker.enter(0) as Pass)
    for (let time = 0; time < 4; time++) fail()
    expect(breaker.state).toBe('closed')
    fail()
    expect(breaker.state).toBe('open')
  })

  it.each([
    ['half of', 0, 0.5],
    ['all of', 1, 1],
  ])('the first probe comes after %s the delay where chance is %d', (_, chance, part) => {
    const breaker = createBreaker(OPTIONS, () => chance)
    for (let time = 0; time < 5; time++) breaker.failed(breaker.enter(0) as Pass, 0, 'rejected')
    const dueMs = OPTIONS.probeAfterMs * part
    expect(breaker.enterProbe(dueMs - 1)).toBeNull()
    expect(breaker.enterProbe(dueMs)).not.toBeNull()
  })

  it('the breaker closes at most once in ten seconds for a store whose answers are nearly too late', () => {
    const breaker = createBreaker(OPTIONS, () => 1)
    const closings: number[] = []
    for (let nowMs = 0; nowMs < 60_000; nowMs += 10) {
      const call = breaker.enter(nowMs)
      if (call !== null) breaker.failed(call, nowMs, 'rejected')
      const probe = breaker.enterProbe(nowMs)
      if (probe === null) continue
      breaker.probeSucceeded(probe, nowMs, 29)
      if (breaker.state === 'closed') closings.push(nowMs)
    }
    const gaps = closings.slice(1).map((atMs, index) => atMs - (closings[index] as number))
    expect(closings.length).toBeGreaterThan(4)
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(CALM_MS)
  })

  it('the breaker closes again at once for a store that is well, however often that was lost', () => {
    const breaker = createBreaker(OPTIONS, () => 1)
    for (let nowMs = 0; nowMs < 5_000; nowMs += 1_000) {
      for (let time = 0; time < 5; time++) breaker.failed(breaker.enter(nowMs) as Pass, nowMs, 'rejected')
      breaker.probeSucceeded(breaker.enterProbe(nowMs + 500) as Pass, nowMs + 500, 2)
      expect(breaker.state).toBe('closed')
    }
  })

  it('the breaker is not kept open longer by calls that were in flight when it opened', () => {
    const breaker = createBreaker(OPTIONS, () => 1)
    const passes = Array.from({ length: 50 }, () => breaker.enter(0) as Pass)
    for (const [index, pass] of passes.entries()) breaker.failed(pass, index, 'rejected')
    expect(breaker.probeAtMs).toBe(4 + 500)
  })

  /** Five calls in a row, the first made at `fromMs`, all silent until `toMs`. Returns the breaker and why it opened. */
  function silentFor(fromMs: number, toMs: number): { breaker: Breaker; because: Evidence | null } {
    let because: Evidence | null = null
    const breaker = createBreaker(
      OPTIONS,
      () => 1,
      (_, evidence) => {
        because = evidence
      },
    )
    const passes = Array.from({ length: 5 }, (_, nth) => breaker.enter(fromMs + nth) as Pass)
    for (const pass of passes) breaker.failed(pass, toMs, 'silent')
    return { breaker, because }
  }

  it('the breaker opens for a silence that has lasted, to the millisecond and at any time, and says for how long', () => {
    expect(silentFor(7_000, 7_000 + OPTIONS.silenceMs - 1).breaker.state).toBe('closed')
    const { breaker, because } = silentFor(7_000, 7_000 + OPTIONS.silenceMs)
    expect(breaker.state).toBe('open')
    expect(because).toEqual({ calls: 5, withinMs: OPTIONS.silenceMs, failure: 'silent' })
  })

  it('the breaker lets the next call try a node under suspicion when the one before failed or was not made', () => {
    const { breaker } = silentFor(0, 30)
    const first = breaker.enter(31) as Pass
    breaker.withdrawn(first)
    const second = breaker.enter(32) as Pass
    // Nobody waits for the first any more: what comes of it says nothing about the second.
    breaker.withdrawn(first)
    expect(breaker.enter(33)).toBeNull()
    breaker.failed(second, 62, 'silent')
    expect(breaker.enter(63)).not.toBeNull()
    expect(breaker.enter(63)).toBeNull()
  })

  it('the breaker lets everybody try a node whose last failure is as old as a silence that counts', () => {
    const { breaker } = silentFor(0, 30)
    const lastMs = 30 + OPTIONS.silenceMs
    expect(breaker.enter(lastMs - 1)).not.toBeNull()
    expect(breaker.enter(lastMs - 1)).toBeNull()
    expect([breaker.enter(lastMs), breaker.enter(lastMs)]).not.toContain(null)
  })

  /** A breaker that closed at 500 ms and opened again at `againMs`, after a probe that was answered within `tookMs`. */
  function probedAgain(againMs: number, tookMs: number, probedMs = againMs + 500): BreakerState {
    const breaker = createBreaker(OPTIONS, () => 1)
    const reject = (nowMs: number): void => {
      for (let time = 0; time < 5; time++) breaker.failed(breaker.enter(nowMs) as Pass, nowMs, 'rejected')
    }
    reject(0)
    breaker.probeSucceeded(breaker.enterProbe(500) as Pass, 500, 2)
    reject(againMs)
    breaker.probeSucceeded(breaker.enterProbe(probedMs) as Pass, probedMs, tookMs)
    return breaker.state
  }

  it('the breaker that opened again within ten seconds closes for a quick answer, or when they are over', () => {
    const { quickMs } = OPTIONS
    expect(probedAgain(2_000, quickMs)).toBe('closed')
    expect(probedAgain(2_000, quickMs + 1)).toBe('open')
    expect(probedAgain(2_000, quickMs + 1, 500 + CALM_MS - 1)).toBe('open')
    expect(probedAgain(2_000, quickMs + 1, 500 + CALM_MS)).toBe('closed')
    expect(probedAgain(500 + CALM_MS, quickMs + 1)).toBe('closed')
  })

  /** A node that pauses while calls are made every `everyMs`: each is given up after 30 ms. Returns when it opened. */
  function pausedFor(pauseMs: number, everyMs: number): number | null {
    let openedAtMs: number | null = null
    let nowMs = 0
    const breaker = createBreaker(
      OPTIONS,
      () => 1,
      state => {
        if (state === 'open') openedAtMs = nowMs
      },
    )
    const waiting: { readonly pass: Pass; readonly madeAtMs: number }[] = []
    for (; nowMs <= 1_000 && openedAtMs === null; nowMs++) {
      while (waiting[0] !== undefined && (nowMs >= pauseMs || nowMs - waiting[0].madeAtMs >= 30)) {
        const { pass, madeAtMs } = waiting.shift() as (typeof waiting)[0]
        if (nowMs - madeAtMs >= 30) breaker.failed(pass, nowMs, 'silent')
        else breaker.succeeded(pass)
      }
      const pass = nowMs % everyMs === 0 ? breaker.enter(nowMs) : null
      if (pass !== null) waiting.push({ pass, madeAtMs: nowMs })
    }
    return openedAtMs
  }

  it.each([1, 2, 5, 10])(
    'the breaker does not open for a pause of 60 ms, with a call every %i ms',
    everyMs => {
      expect(pausedFor(60, everyMs)).toBeNull()
    },
  )

  it.each([1, 2, 5, 10])('the breaker opens for a node that is gone, with a call every %i ms', everyMs => {
    const openedAtMs = pausedFor(Number.POSITIVE_INFINITY, everyMs)
    expect(openedAtMs).toBeGreaterThanOrEqual(100)
    expect(openedAtMs).toBeLessThan(160)
  })

  it('the breaker keeps few waiting for a node under suspicion', () => {
    const breaker = createBreaker(OPTIONS, () => 1)
    const passes = Array.from({ length: 5 }, () => breaker.enter(0) as Pass)
    for (const pass of passes) breaker.failed(pass, 30, 'silent')
    expect(breaker.state).toBe('closed')
    const trial = breaker.enter(31) as Pass
    expect([trial, breaker.enter(31), breaker.enter(50)]).toEqual([expect.anything(), null, null])
    breaker.succeeded(trial)
    expect([breaker.enter(60), breaker.enter(60)]).not.toContain(null)
  })

  it('the breaker does not count calls that waited while others made at the same time were answered', () => {
    const breaker = createBreaker(OPTIONS, () => 1)
    const burst = Array.from({ length: 80 }, () => breaker.enter(0) as Pass)
    for (const pass of burst.slice(0, 60)) breaker.succeeded(pass)
    for (const pass of burst.slice(60)) breaker.failed(pass, 200, 'silent')
    expect(breaker.state).toBe('closed')
    expect([breaker.enter(201), breaker.enter(201)]).not.toContain(null)
  })
})
