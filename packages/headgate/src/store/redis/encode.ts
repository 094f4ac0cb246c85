import type { Limit } from '../../algorithms/algorithm.js'
import type { Check, Question, Refund, Renewal } from '../../engine/question.js'
import { onlyCheckOf } from '../../engine/single-question.js'
import type { Action } from '../stage.js'
import { type Script, scripts } from './scripts.gen.js'

/** The keys and arguments of one script call. */
export interface ScriptCall {
  readonly keys: string[]
  readonly args: string[]
}

/** A call of one of the scripts that answer questions. */
export interface QuestionsCall extends ScriptCall {
  readonly script: Script
}

/** Encodes questions for the script that answers them fastest. */
export function encodeQuestions(
  action: Action,
  questions: readonly Question[],
  keyOf: (check: Check) => string,
  clockUs: string,
): QuestionsCall {
  const same = action === 'decide' ? sameCheckOf(questions) : null
  const name = same?.limit.algorithm.wire.script
  if (!same || !name) return { script: scripts[action], ...encodeAnyQuestions(questions, keyOf, clockUs) }
  const keys: string[] = []
  for (const question of questions) keys.push(keyOf(onlyCheckOf(question) as Check))
  return { script: scripts[name], keys, args: oneLimitArgs(same, clockUs) }
}

/** Arguments of the scripts for one limit, without those that need not be said: each takes Redis as long as some arithmetic. */
function oneLimitArgs({ limit, cost }: Check, clockUs: string): string[] {
  const args = [String(limit.limit), String(limit.algorithm.wire.span(limit))]
  if (clockUs !== '') args.push(numberText(cost), clockUs)
  else if (cost !== 1) args.push(numberText(cost))
  return args
}

/** One of the questions, where all are about the same cost of one limit. */
function sameCheckOf(questions: readonly Question[]): Check | null {
  const first = onlyCheckOf(questions[0] as Question)
  if (first === null || first.cost === 0) return null
  for (const question of questions) {
    const only = onlyCheckOf(question)
    if (only === null || only.limit !== first.limit || only.cost !== first.cost) return null
  }
  return first
}

/**
 * Encodes the arguments of decide.lua and peek.lua. Limits and shapes are sent once, however many checks share
 * them.
 */
function encodeAnyQuestions(
  questions: readonly Question[],
  keyOf: (check: Check) => string,
  clockUs: string,
): ScriptCall {
  const limits = new LimitList()
  const keys: string[] = []
  const body: string[] = []
  let shape: readonly string[] = []
  let alike = 0
  for (const question of questions) {
    const single = onlyCheckOf(question)
    if (single !== null) {
      keys.push(keyOf(single))
      if (single.cost === 1) body.push(limits.negative(single.limit))
      else body.push('0', limits.number(single.limit), numberText(single.cost))
      alike = 0
      continue
    }
    const next = shapeOf(question, keys, limits, keyOf)
    if (alike > 0 && isSameShape(shape, next)) {
      body[body.length - next.length - 1] = String(++alike)
      continue
    }
    shape = next
    alike = 1
    body.push('1', ...shape)
  }
  return { keys, args: [clockUs, ...limits.encoded(), ...body] }
}

/** Encodes limits and costs of a question by their positions; its keys are added to the others. */
function shapeOf(
  question: Question,
  keys: string[],
  limits: LimitList,
  keyOf: (check: Check) => string,
): readonly string[] {
  const shape = [numberText(question.alternatives.length)]
  for (const checks of question.alternatives) encodeChecks(checks, keys, shape, limits, keyOf)
  encodeChecks(question.shadow, keys, shape, limits, keyOf)
  return shape
}

function isSameShape(one: readonly string[], other: readonly string[]): boolean {
  if (one.length !== other.length) return false
  for (let index = 0; index < one.length; index++) if (one[index] !== other[index]) return false
  return true
}

function encodeChecks(
  checks: readonly Check[],
  keys: string[],
  shape: string[],
  limits: LimitList,
  keyOf: (check: Check) => string,
): void {
  shape.push(numberText(checks.length))
  for (const check of checks) {
    keys.push(keyOf(check))
    shape.push(limits.number(check.limit), numberText(check.cost))
  }
}

/** Encodes the arguments of refund.lua. */
export function encodeRefunds(
  refunds: readonly Refund[],
  keyOf: (check: Check) => string,
  clockUs: string,
): ScriptCall {
  const limits = new LimitList()
  const body = refunds.flatMap(({ check, units, chargedAtUs, heldSinceUs }) => [
    limits.number(check.limit),
    String(units),
    String(chargedAtUs ?? -1),
    String(heldSinceUs ?? -1),
  ])
  return { keys: refunds.map(refund => keyOf(refund.check)), args: [clockUs, ...limits.encoded(), ...body] }
}

/** Encodes the arguments of renew.lua. */
export function encodeRenewals(
  renewals: readonly Renewal[],
  keyOf: (check: Check) => string,
  clockUs: string,
): ScriptCall {
  const limits = new LimitList()
  const body = renewals.flatMap(({ check, takenAtUs }) => [
    limits.number(check.limit),
    String(check.cost),
    String(takenAtUs),
  ])
  return { keys: renewals.map(({ check }) => keyOf(check)), args: [clockUs, ...limits.encoded(), ...body] }
}

/**
 * Encodes the arguments of reset.lua: it reads each state as its limit says, so that no foreign data is deleted.
 */
export function encodeReset(
  checks: readonly Check[],
  keyOf: (check: Check) => string,
  clockUs: string,
): ScriptCall {
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
    return numberText(this.#numberOf(limit))
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

// Converted to text once, because a call names the same few limits again and again.
const NUMBERS = Array.from({ length: 64 }, (_, number) => String(number))
const NEGATIVES = NUMBERS.map(number => `-${number}`)

function numberText(number: number): string {
  return NUMBERS[number] ?? String(number)
}

function encodeLimit(limit: Limit): string[] {
  const { wire } = limit.algorithm
  return [wire.code, String(limit.limit), String(wire.span(limit)), String(wire.parts(limit))]
}
