/** How a script of lua/ reads its keys and arguments, and how it replies: the counterpart of encode and decode. */

import { type Algorithm, type Limit, NEVER } from '../../src/algorithms/algorithm.ts'
import { allAlgorithms } from '../../src/algorithms/all-algorithms.ts'
import type { Check, Refund, Renewal } from '../../src/check/check.ts'
import type { Answer, Question, Verdict } from '../../src/store/ask-store.ts'
import { isConcurrency, isTokenBucket } from '../support/limit-kinds.ts'

/** The scripts for a single limit, and the number of the algorithm of each. */
const ONE_LIMIT = new Map<Decision, string>(
  [...allAlgorithms.values()].flatMap(({ wire }) =>
    wire.script === null ? [] : [[wire.script, wire.code] as const],
  ),
)

type Decision = NonNullable<Algorithm['wire']['script']> | 'decide'

/** Whether a script of this name charges questions. */
export function isDecision(script: string): script is Decision {
  return script === 'decide' || ONE_LIMIT.has(script as Decision)
}

/** Reads the questions of a charging script. */
export function readDecisions(
  script: Decision,
  keys: readonly string[],
  args: readonly string[],
): Question[] {
  return script === 'decide' ? readQuestions(keys, args) : readOneLimit(script, keys, args)
}

export function readQuestions(keys: readonly string[], args: readonly string[]): Question[] {
  const reader = new ArgumentReader(keys, args)
  const questions: Question[] = []
  while (!reader.isAtEnd()) questions.push(...reader.questions())
  return questions
}

function readOneLimit(
  script: Decision,
  keys: readonly string[],
  [limit, span, cost = '1']: readonly string[],
): Question[] {
  const which = ONE_LIMIT.get(script) as string
  const args = ['', '1', which, String(limit), String(span), '0', ...keys.flatMap(() => ['0', '1', cost])]
  return readQuestions(keys, args)
}

export function readRefunds(keys: readonly string[], args: readonly string[]): Refund[] {
  const reader = new ArgumentReader(keys, args)
  return keys.map(() => {
    const check = reader.checkWithoutCost()
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
  return keys.map(() => ({ check: reader.check(), takenAtUs: reader.number() }))
}

export function readReset(keys: readonly string[], args: readonly string[]): Check[] {
  const reader = new ArgumentReader(keys, args)
  return keys.map(() => reader.checkWithoutCost())
}

export function replyOf(question: Question, answer: Answer, nowUs: number): unknown[] {
  const valuesOf = (verdicts: readonly Verdict[], checks: readonly Check[] = []): unknown[] =>
    verdicts.map((verdict, index) => replyToCheck(verdict, checks[index] as Check, nowUs))
  const values = answer.verdicts.flatMap((verdicts, index) =>
    valuesOf(verdicts, question.alternatives[index]),
  )
  if (isSingle(question)) return values
  return [answer.charged, ...values, ...valuesOf(answer.shadow, question.shadow)]
}

/** Whether it is one check and nothing else, whose reply has no index of an alternative. */
function isSingle({ alternatives, shadow }: Question): boolean {
  return alternatives.length === 1 && alternatives[0]?.length === 1 && shadow.length === 0
}

/** Replies with what is left, if it was charged at the time of the call. */
function replyToCheck(verdict: Verdict, { limit }: Check, nowUs: number): unknown {
  const { retryAfterUs, remaining, resetAfterUs, chargedAtUs } = verdict
  // The engine does not say how many micro-tokens are left, so the reply is a list; for permits it always is.
  const isTold = !isTokenBucket(limit) && !isConcurrency(limit)
  if (isTold && chargedAtUs === nowUs) return remaining
  return [retryAfterUs === NEVER ? -1 : retryAfterUs, remaining, resetAfterUs, chargedAtUs ?? -1]
}

class ArgumentReader {
  readonly #keys: readonly string[]
  readonly #args: readonly string[]
  /** The first argument is the clock, which the server has by itself. */
  #position = 1
  #keyPosition = 0
  readonly #limits: Limit[]

  constructor(keys: readonly string[], args: readonly string[]) {
    this.#keys = keys
    this.#args = args
    this.#limits = this.times(() => this.#limit())
  }

  number(): number {
    return Number(this.#args[this.#position++])
  }

  times<Item>(read: () => Item): Item[] {
    const items: Item[] = []
    for (let left = this.number(); left > 0; left--) items.push(read())
    return items
  }

  check(): Check {
    const check = this.checkWithoutCost()
    return { ...check, cost: this.number() }
  }

  isAtEnd(): boolean {
    return this.#position >= this.#args.length
  }

  /**
   * Minus the limit is a question of one unit, 0 one of another cost; otherwise that many of the same shape follow.
   */
  questions(): Question[] {
    const count = this.number()
    if (count < 0) return [this.#single(-count, 1)]
    if (count === 0) return [this.#single(this.number(), this.number())]
    const shapeAt = this.#position
    return Array.from({ length: count }, () => {
      this.#position = shapeAt
      return this.#shaped()
    })
  }

  #single(which: number, cost: number): Question {
    return { alternatives: [[{ ...this.#checkOf(which), cost }]], shadow: [] }
  }

  #shaped(): Question {
    const alternatives = this.times(() => this.times(() => this.check()))
    return { alternatives, shadow: this.times(() => this.check()) }
  }

  checkWithoutCost(): Check {
    return this.#checkOf(this.number())
  }

  #checkOf(which: number): Check {
    const limit = this.#limits[which - 1] as Limit
    const subject = this.#keys[this.#keyPosition++] as string
    return { subject, scope: 'global', name: limit.id, limit, cost: 0 }
  }

  #limit(): Limit {
    const code = String(this.number())
    const algorithm = [...allAlgorithms.values()].find(({ wire }) => wire.code === code) as Algorithm
    const limit = this.number()
    const span = this.number()
    const buckets = this.number()
    const quota = { limit, windowUs: span, burst: null }
    const spans = { windowUs: span, refillPerSecond: span, holdForUs: span, buckets }
    return { algorithm, id: `${algorithm.name} ${span} ${buckets}`, limit, quota, ...spans }
  }
}
