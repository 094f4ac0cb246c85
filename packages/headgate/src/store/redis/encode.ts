import type { Limit } from '../../engine/limit.js'
import type { Check, Question, Refund } from '../../engine/question.js'
import { SingleQuestion } from '../../engine/single.js'

/** The keys and arguments of one script call. */
export interface Call {
  readonly keys: string[]
  readonly args: string[]
}

/** Position of the algorithm in `ALGORITHMS` of lua/include/checks.lua. */
const ALGORITHM_NUMBER: Readonly<Record<Limit['algorithm'], string>> = {
  'sliding-window-log': '1',
  'sliding-window-counter': '2',
  'sliding-window-buckets': '3',
  'token-bucket': '4',
}

/** Arguments of decide.lua and peek.lua. Limits are sent once, however many checks share them. */
export function encodeQuestions(
  questions: readonly Question[],
  keyOf: (check: Check) => string,
  clockUs: string,
): Call {
  const limits = new LimitList()
  const keys: string[] = []
  const body: string[] = [String(questions.length)]
  for (const question of questions) {
    const single = singleCheckOf(question)
    if (single !== null) {
      keys.push(keyOf(single))
      if (single.cost === 1) body.push(limits.negative(single.limit))
      else body.push(limits.number(single.limit), String(single.cost))
      continue
    }
    body.push('0', String(question.alternatives.length))
    for (const checks of question.alternatives) encodeChecks(checks, keys, body, limits, keyOf)
    encodeChecks(question.shadow, keys, body, limits, keyOf)
  }
  return { keys, args: [clockUs, ...limits.encoded(), ...body] }
}

/** The check of a question that has only one, which the scripts take and answer in fewer words. */
export function singleCheckOf(question: Question): Check | null {
  if (question instanceof SingleQuestion) return question
  const [first] = question.alternatives
  const isSingle = question.alternatives.length === 1 && first?.length === 1 && question.shadow.length === 0
  return isSingle ? (first[0] as Check) : null
}

function encodeChecks(
  checks: readonly Check[],
  keys: string[],
  body: string[],
  limits: LimitList,
  keyOf: (check: Check) => string,
): void {
  body.push(String(checks.length))
  for (const check of checks) {
    keys.push(keyOf(check))
    body.push(limits.number(check.limit), String(check.cost))
  }
}

/** Arguments of refund.lua. */
export function encodeRefunds(
  refunds: readonly Refund[],
  keyOf: (check: Check) => string,
  clockUs: string,
): Call {
  const limits = new LimitList()
  const body = refunds.flatMap(({ check, units, chargedAtUs, heldSinceUs }) => [
    limits.number(check.limit),
    String(units),
    String(chargedAtUs ?? -1),
    String(heldSinceUs ?? -1),
  ])
  return { keys: refunds.map(refund => keyOf(refund.check)), args: [clockUs, ...limits.encoded(), ...body] }
}

/** Arguments of reset.lua: it reads each state as its limit says, so that nobody else's data is deleted. */
export function encodeReset(
  checks: readonly Check[],
  keyOf: (check: Check) => string,
  clockUs: string,
): Call {
  const limits = new LimitList()
  const body = checks.map(check => limits.number(check.limit))
  return { keys: checks.map(keyOf), args: [clockUs, ...limits.encoded(), ...body] }
}

class LimitList {
  readonly #numbers = new Map<Limit, number>()
  /** Most checks of a call are about the same limit. */
  #last: Limit | undefined
  #lastNumber = 0

  number(limit: Limit): string {
    return NUMBERS[this.#numberOf(limit)] ?? String(this.#numberOf(limit))
  }

  negative(limit: Limit): string {
    return NEGATIVES[this.#numberOf(limit)] ?? String(-this.#numberOf(limit))
  }

  encoded(): string[] {
    const encoded = [String(this.#numbers.size)]
    for (const limit of this.#numbers.keys()) encoded.push(...encodeLimit(limit))
    return encoded
  }

  #numberOf(limit: Limit): number {
    if (limit === this.#last) return this.#lastNumber
    let number = this.#numbers.get(limit)
    if (number === undefined) {
      number = this.#numbers.size + 1
      this.#numbers.set(limit, number)
    }
    this.#last = limit
    this.#lastNumber = number
    return number
  }
}

// As text once: a call names the same few limits again and again.
const NUMBERS = Array.from({ length: 64 }, (_, number) => String(number))
const NEGATIVES = NUMBERS.map(number => `-${number}`)

function encodeLimit(limit: Limit): string[] {
  return [
    ALGORITHM_NUMBER[limit.algorithm],
    String(limit.limit),
    String(limit.algorithm === 'token-bucket' ? limit.refillPerSecond : limit.windowUs),
    String(limit.algorithm === 'sliding-window-buckets' ? limit.buckets : 0),
  ]
}
