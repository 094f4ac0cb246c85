/** How a script of lua/ reads its keys and arguments, and how it replies: the counterpart of encode and decode. */

import { type Algorithm, type Limit, NEVER } from '../../src/algorithms/algorithm.ts'
import { allAlgorithms } from '../../src/algorithms/all-algorithms.ts'
import type { BucketsState } from '../../src/algorithms/sliding-window-buckets.ts'
import type { CounterState } from '../../src/algorithms/sliding-window-counter.ts'
import type { BucketState } from '../../src/algorithms/token-bucket.ts'
import type { Check, Refund, Renewal } from '../../src/check/check.ts'
import type { Answer, Question, Verdict } from '../../src/store/ask-store.ts'

/** Reads the questions of decide.lua, which are all of one shape. */
export function readQuestions(keys: readonly string[], args: readonly string[]): Question[] {
  const reader = new ArgumentReader(keys, args)
  const ends = reader.times(() => reader.number())
  const limits = reader.times(() => reader.limit())
  return Array.from({ length: keys.length / limits.length }, () => {
    const checks = limits.map(({ limit, cost }) => reader.check(limit, cost))
    const alternatives = ends.map((end, index) => checks.slice(ends[index - 1] ?? 0, end))
    return { alternatives, shadow: checks.slice(ends.at(-1) ?? 0) }
  })
}

/** Reads the limits of peek.lua. */
export function readLooks(keys: readonly string[], args: readonly string[]): Check[] {
  const reader = new ArgumentReader(keys, args)
  return keys.map(() => {
    const { limit, cost } = reader.limit()
    return reader.check(limit, cost)
  })
}

export function readRefunds(keys: readonly string[], args: readonly string[]): Refund[] {
  const reader = new ArgumentReader(keys, args)
  return keys.map(() => {
    const check = reader.check(reader.limitWithoutCost())
    const units = reader.number()
    const chargedAtUs = reader.number()
    const heldSinceUs = reader.number()
    return {
      check,
      units,
      chargedAtUs: chargedAtUs === -1 ? null : chargedAtUs,
      ...(heldSinceUs !== -1 && { heldSinceUs }),
    }
  })
}

export function readRenewals(keys: readonly string[], args: readonly string[]): Renewal[] {
  const reader = new ArgumentReader(keys, args)
  return keys.map(() => ({
    check: reader.check(reader.limitWithoutCost(), reader.number()),
    takenAtUs: reader.number(),
  }))
}

export function readReset(keys: readonly string[], args: readonly string[]): Check[] {
  const reader = new ArgumentReader(keys, args)
  return keys.map(() => reader.check(reader.limitWithoutCost()))
}

/** Replies to one question; `states` are the states that were read, in the order of its checks. */
export function replyOf(
  question: Question,
  answer: Answer,
  states: readonly unknown[],
  nowUs: number,
): unknown[] {
  const checks = [...question.alternatives.flat(), ...question.shadow]
  const shadowFrom = checks.length - question.shadow.length
  const verdicts = answer.verdicts.flat()
  const values = checks.map((check, index) => {
    const verdict = index < shadowFrom ? verdicts[index] : answer.shadow[index - shadowFrom]
    return verdict === undefined ? 0 : replyToCheck(check, verdict, states[index], nowUs)
  })
  return [answer.charged, ...values]
}

/** Replies with what is left, if it was charged at the time of the call and the engine says how much; or with the state. */
export function replyToCheck(check: Check, verdict: Verdict, state: unknown, nowUs: number): unknown {
  const { kind } = check.limit.algorithm.wire
  const { chargedAtUs, remaining } = verdict
  const isAtOnce = chargedAtUs === nowUs || chargedAtUs === nowUs - (nowUs % 1_000)
  if (chargedAtUs !== null && isAtOnce && ['log', 'counter', 'parts'].includes(kind)) return remaining
  return [chargedAtUs === null ? 0 : 1, ...storedState(check, verdict, state, nowUs)]
}

/** A state as the Lua file of its algorithm tells it. Those of entries are told by what follows from them. */
function storedState({ limit, cost }: Check, verdict: Verdict, state: unknown, nowUs: number): unknown[] {
  const { remaining, retryAfterUs, resetAfterUs, chargedAtUs } = verdict
  const used = limit.limit - remaining - (chargedAtUs === null ? 0 : cost)
  switch (limit.algorithm.wire.kind) {
    case 'counter': {
      const { previous, current, startMs, resetUs } = state as CounterState
      return [previous, current, startMs, resetUs / 1_000]
    }
    case 'bucket':
      return [(state as BucketState).missing, (state as BucketState).lastRefillUs]
    case 'parts':
      return [(state as BucketsState).startMs, (state as BucketsState).counts.join(',')]
    case 'permits':
      return [
        used,
        nowUs + resetAfterUs,
        retryAfterUs === NEVER ? -1 : nowUs + retryAfterUs,
        chargedAtUs ?? -1,
      ]
    default: {
      const { windowUs } = limit.quota
      const lastUs = chargedAtUs ?? (resetAfterUs === 0 ? 0 : nowUs + resetAfterUs - windowUs)
      return [used, lastUs, retryAfterUs === NEVER ? -1 : Math.max(-1, nowUs + retryAfterUs - windowUs)]
    }
  }
}

class ArgumentReader {
  readonly #keys: readonly string[]
  readonly #args: readonly string[]
  /** The first argument is the clock, which the server has by itself. */
  #position = 1
  #keyPosition = 0

  constructor(keys: readonly string[], args: readonly string[]) {
    this.#keys = keys
    this.#args = args
  }

  number(): number {
    return Number(this.#args[this.#position++])
  }

  times<Item>(read: () => Item): Item[] {
    const items: Item[] = []
    for (let left = this.number(); left > 0; left--) items.push(read())
    return items
  }

  check(limit: Limit, cost = 0): Check {
    const subject = this.#keys[this.#keyPosition++] as string
    return { subject, scope: 'global', name: limit.id, limit, cost }
  }

  /** Kind, units and three numbers. */
  limit(): { readonly limit: Limit; readonly cost: number } {
    const algorithm = this.#algorithm()
    const cost = this.number()
    return { limit: this.#numbers(algorithm), cost }
  }

  limitWithoutCost(): Limit {
    return this.#numbers(this.#algorithm())
  }

  #algorithm(): Algorithm {
    const kind = this.#args[this.#position++]
    return [...allAlgorithms.values()].find(({ wire }) => wire.kind === kind) as Algorithm
  }

  #numbers(algorithm: Algorithm): Limit {
    const limit = this.number()
    const second = this.number()
    const buckets = this.number() || 0
    const isInMs = algorithm.wire.kind === 'counter' || algorithm.wire.kind === 'parts'
    const windowUs = isInMs ? second * 1_000 : second
    const quota = { limit, windowUs, burst: null }
    const spans = { windowUs, refillPerSecond: second, holdForUs: second, buckets }
    return { algorithm, id: `${algorithm.name} ${second} ${buckets}`, limit, quota, ...spans }
  }
}
