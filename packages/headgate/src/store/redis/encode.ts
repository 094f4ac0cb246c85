import type { Limit } from '../../engine/limit.js'
import type { Check, Question, Refund } from '../../engine/question.js'

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
  const encodeChecks = (checks: readonly Check[]): void => {
    body.push(String(checks.length))
    for (const check of checks) {
      keys.push(keyOf(check))
      body.push(limits.number(check.limit), String(check.cost))
    }
  }
  for (const question of questions) {
    body.push(String(question.alternatives.length))
    for (const checks of question.alternatives) encodeChecks(checks)
    encodeChecks(question.shadow)
  }
  return { keys, args: [clockUs, ...limits.encoded(), ...body] }
}

/** Arguments of refund.lua. */
export function encodeRefunds(
  refunds: readonly Refund[],
  keyOf: (check: Check) => string,
  clockUs: string,
): Call {
  const limits = new LimitList()
  const body = refunds.flatMap(({ check, units, chargedAtUs }) => [
    limits.number(check.limit),
    String(units),
    String(chargedAtUs ?? -1),
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
  readonly #numbers = new Map<Limit, string>()

  number(limit: Limit): string {
    let number = this.#numbers.get(limit)
    if (number === undefined) {
      number = String(this.#numbers.size + 1)
      this.#numbers.set(limit, number)
    }
    return number
  }

  encoded(): string[] {
    const encoded = [String(this.#numbers.size)]
    for (const limit of this.#numbers.keys()) encoded.push(...encodeLimit(limit))
    return encoded
  }
}

function encodeLimit(limit: Limit): string[] {
  return [
    ALGORITHM_NUMBER[limit.algorithm],
    String(limit.limit),
    String(limit.algorithm === 'token-bucket' ? limit.refillPerSecond : limit.windowUs),
    String(limit.algorithm === 'sliding-window-buckets' ? limit.buckets : 0),
  ]
}
