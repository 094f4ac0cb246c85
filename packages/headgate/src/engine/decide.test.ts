import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NEVER } from '../algorithms/algorithm.js'
import { type LogLimit, slidingWindowLog } from '../algorithms/sliding-window-log.js'
import { decide, type OpenState, peek } from './decide.js'
import { algorithmOf, type State } from './legacy-algorithm.js'
import type { Answer, Check, Question } from './question.js'

const WINDOW_US = 60_000_000
const NOW_US = 1_700_000_000_000_000

function log(limit: number): LogLimit {
  return slidingWindowLog({ limit, window: '1m' })
}

function check(name: string, limit: number, cost = 1): Check {
  return { subject: 'user:1', scope: 'global', name, limit: log(limit), cost }
}

function ask(alternatives: readonly (readonly Check[])[], shadow: readonly Check[] = []): Question {
  return { alternatives, shadow }
}

/** States by the name of the limit; a state that was asked for stays. */
function book(): { open: OpenState; used: (name: string, nowUs?: number) => number; copy: () => unknown } {
  const states = new Map<string, State>()
  return {
    open(check) {
      const state = states.get(check.name) ?? algorithmOf(check.limit).empty()
      states.set(check.name, state)
      return state
    },
    used(name, nowUs = NOW_US) {
      const state = states.get(name)
      const ample = log(1_000)
      return state === undefined ? 0 : 1_000 - algorithmOf(ample).remaining(ample, state, nowUs)
    },
    copy: () => structuredClone([...states]),
  }
}

/** Returns the wait a caller is told: the least over the alternatives of the most over the checks of each. */
function leastWaitUs(answer: Answer): number {
  return Math.min(...answer.verdicts.map(checks => Math.max(0, ...checks.map(one => one.retryAfterUs))))
}

describe('one alternative', () => {
  it('an alternative charges every check when all fit', () => {
    const { open, used } = book()
    const answer = decide(ask([[check('a', 3), check('b', 2, 2)]]), open, NOW_US)
    expect(answer.charged).toBe(0)
    expect(answer.verdicts).toEqual([
      [
        { allowed: true, remaining: 2, retryAfterUs: 0, resetAfterUs: WINDOW_US, chargedAtUs: NOW_US },
        { allowed: true, remaining: 0, retryAfterUs: 0, resetAfterUs: WINDOW_US, chargedAtUs: NOW_US },
      ],
    ])
    expect([used('a'), used('b')]).toEqual([1, 2])
  })

  it('an alternative charges none when one does not fit, and says which had room', () => {
    const { open, used } = book()
    decide(ask([[check('b', 1)]]), open, NOW_US)
    const answer = decide(ask([[check('a', 3), check('b', 1), check('c', 3)]]), open, NOW_US + 1)
    expect(answer.charged).toBe(-1)
    expect(answer.verdicts[0]?.map(verdict => verdict.allowed)).toEqual([true, false, true])
    expect(answer.verdicts[0]?.map(verdict => verdict.retryAfterUs)).toEqual([0, WINDOW_US - 1, 0])
    expect(answer.verdicts[0]?.map(verdict => verdict.chargedAtUs)).toEqual([null, null, null])
    expect([used('a'), used('b'), used('c')]).toEqual([0, 1, 0])
  })

  it('a cost above the capacity is never admitted, however long one waits', () => {
    const { open } = book()
    const answer = decide(ask([[check('a', 3, 4)]]), open, NOW_US)
    expect(answer.charged).toBe(-1)
    expect(answer.verdicts[0]?.[0]?.retryAfterUs).toBe(NEVER)
  })

  it('a cost of 0 asks whether anything is owed, and writes nothing down', () => {
    const { open, copy } = book()
    open(check('a', 1))
    const before = copy()
    const answer = decide(ask([[check('a', 1, 0)]]), open, NOW_US)
    expect(answer.verdicts[0]?.[0]).toMatchObject({ allowed: true, remaining: 1, chargedAtUs: null })
    expect(copy()).toEqual(before)
  })

  it('an alternative without any check is charged: nothing limits it', () => {
    expect(decide(ask([[]]), book().open, NOW_US)).toMatchObject({ charged: 0, verdicts: [[]], shadow: [] })
  })
})

describe('several alternatives', () => {
  it('the first of several alternatives that admits is charged, and no further one is looked at', () => {
    const { open, used } = book()
    decide(ask([[check('route', 1)]]), open, NOW_US)
    const levels = [[check('route', 1)], [check('user', 5)], [check('global', 9)]]
    const answer = decide(ask(levels), open, NOW_US)
    expect(answer.charged).toBe(1)
    expect(answer.verdicts).toHaveLength(2)
    expect([used('route'), used('user'), used('global')]).toEqual([1, 1, 0])
  })

  it('several alternatives are denied only when none admits, each with its own wait', () => {
    const { open } = book()
    decide(ask([[check('route', 1)]]), open, NOW_US)
    decide(ask([[check('user', 1)]]), open, NOW_US + 5_000)
    const answer = decide(ask([[check('user', 1)], [check('route', 1)]]), open, NOW_US + 6_000)
    expect(answer.charged).toBe(-1)
    expect(answer.verdicts).toHaveLength(2)
    expect(leastWaitUs(answer)).toBe(WINDOW_US - 6_000)
  })
})

describe('shadow checks', () => {
  it('shadow checks are charged on their own even if the request is denied', () => {
    const { open, used } = book()
    const answer = decide(ask([[check('a', 0)]], [check('new', 5)]), open, NOW_US)
    expect(answer.charged).toBe(-1)
    expect(answer.shadow[0]).toMatchObject({ allowed: true, remaining: 4 })
    expect(used('new')).toBe(1)
  })

  it('shadow checks never bind: a denied one lets the request pass and writes nothing', () => {
    const { open, used } = book()
    decide(ask([[]], [check('new', 1)]), open, NOW_US)
    const answer = decide(ask([[check('a', 5)]], [check('new', 1), check('other', 0)]), open, NOW_US)
    expect(answer.charged).toBe(0)
    expect(answer.shadow.map(verdict => verdict.allowed)).toEqual([false, false])
    expect([used('a'), used('new')]).toEqual([1, 1])
  })

  it('shadow checks stand alone: one is charged although its neighbour is not', () => {
    const { open, used } = book()
    decide(
      ask([[]], [check('first', 0), check('second', 2), check('second', 2), check('second', 2)]),
      open,
      NOW_US,
    )
    expect([used('first'), used('second')]).toEqual([0, 2])
  })
})

describe('any question', () => {
  const checks = fc.array(
    fc.record({ name: fc.constantFrom('a', 'b', 'c', 'd'), cost: fc.integer({ min: 0, max: 4 }) }),
    { maxLength: 3 },
  )
  /** The limits by name, so that one name always means one limit. */
  const limits: Readonly<Record<string, number>> = { a: 3, b: 5, c: 2, d: 8 }
  // An alternative names each state once: a policy's limits are distinguished by name.
  const alternative = checks.map(list => [...new Map(list.map(one => [one.name, one])).values()])
  const questions = fc.array(
    fc.record({
      gapUs: fc.constantFrom(0, 1, WINDOW_US / 3, WINDOW_US),
      alternatives: fc.array(alternative, { minLength: 1, maxLength: 3 }),
      shadow: checks,
    }),
    { maxLength: 12 },
  )
  const toCheck = ({ name, cost }: { name: string; cost: number }) =>
    check(name, limits[name] as number, cost)
  const toShadow = (one: { name: string; cost: number }) => ({ ...toCheck(one), name: `shadow-${one.name}` })

  it('any question is charged whole or not at all; peek says the same beforehand and changes nothing', () => {
    fc.assert(
      fc.property(questions, list => {
        const { open, used, copy } = book()
        let nowUs = NOW_US
        for (const { gapUs, alternatives, shadow } of list) {
          nowUs += gapUs
          const question = ask(
            alternatives.map(checks => checks.map(toCheck)),
            shadow.map(toShadow),
          )
          for (const check of [...question.alternatives.flat(), ...question.shadow]) open(check)
          const before = copy()
          const usedBefore = Object.keys(limits).map(name => used(name, nowUs))
          const peeked = peek(question, open, nowUs)
          expect(copy()).toEqual(before)

          const answer = decide(question, open, nowUs)
          expect(answer.charged).toBe(peeked.charged)
          const allowed = (verdicts: Answer['verdicts']) => verdicts.map(one => one.map(each => each.allowed))
          expect(allowed(answer.verdicts)).toEqual(allowed(peeked.verdicts))
          expect(answer.verdicts.findIndex(one => one.every(each => each.allowed))).toBe(answer.charged)

          const charged = question.alternatives[answer.charged] ?? []
          const expected = Object.keys(limits).map(
            (name, index) =>
              (usedBefore[index] as number) + (charged.find(check => check.name === name)?.cost ?? 0),
          )
          expect(Object.keys(limits).map(name => used(name, nowUs))).toEqual(expected)
          if (answer.charged >= 0 || leastWaitUs(answer) === NEVER) continue
          // The least wait is when some alternative first fits as a whole.
          const waitUs = leastWaitUs(answer)
          expect(peek(question, open, nowUs + waitUs).charged).toBeGreaterThanOrEqual(0)
          expect(peek(question, open, nowUs + waitUs - 1).charged).toBe(-1)
        }
      }),
      { numRuns: 800 },
    )
  })
})
