/** What a script of lua/ reads from its keys and arguments and what it replies: the other side of encode and decode. */
import { type Limit, NEVER } from '../../src/engine/limit.ts'
import type { Answer, Check, Question, Refund, Verdict } from '../../src/engine/question.ts'
import { SingleQuestion } from '../../src/engine/single.ts'

const ALGORITHMS = [
  'sliding-window-log',
  'sliding-window-counter',
  'sliding-window-buckets',
  'token-bucket',
] as const

export function readQuestions(keys: readonly string[], args: readonly string[]): Question[] {
  const reader = new ArgumentReader(keys, args)
  return reader.times(() => {
    const which = reader.number()
    if (which !== 0) return reader.singleQuestion(which)
    return {
      alternatives: reader.times(() => reader.times(() => reader.check())),
      shadow: reader.times(() => reader.check()),
    }
  })
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

export function readReset(keys: readonly string[], args: readonly string[]): Check[] {
  const reader = new ArgumentReader(keys, args)
  return keys.map(() => reader.checkWithoutCost())
}

export function replyOf(question: Question, answer: Answer): number[] {
  if (question instanceof SingleQuestion) return singleReplyOf(answer.verdicts[0]?.[0] as Verdict)
  return [answer.charged, ...answer.verdicts.flat().flatMap(numbersOf), ...answer.shadow.flatMap(numbersOf)]
}

function singleReplyOf({ allowed, retryAfterUs, remaining, resetAfterUs, chargedAtUs }: Verdict): number[] {
  const denied = retryAfterUs === NEVER ? -3 : -3 - retryAfterUs
  return [allowed ? (chargedAtUs ?? -1) : denied, remaining, resetAfterUs]
}

function numbersOf({ retryAfterUs, remaining, resetAfterUs, chargedAtUs }: Verdict): number[] {
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

  /** Minus the limit is a cost of one; the limit is followed by another cost. */
  singleQuestion(which: number): SingleQuestion {
    const { subject, scope, name, limit } = this.#checkOf(Math.abs(which))
    return new SingleQuestion(subject, scope, name, limit, which < 0 ? 1 : this.number())
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
    const algorithm = ALGORITHMS[this.number() - 1] as Limit['algorithm']
    const limit = this.number()
    const span = this.number()
    const buckets = this.number()
    const quota = { limit, windowUs: span, burst: null }
    if (algorithm === 'token-bucket') return { algorithm, id: algorithm, limit, quota, refillPerSecond: span }
    const common = { id: `${algorithm} ${span} ${buckets}`, limit, quota, windowUs: span }
    return algorithm === 'sliding-window-buckets'
      ? { ...common, algorithm, buckets }
      : { ...common, algorithm }
  }
}
