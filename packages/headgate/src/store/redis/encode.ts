import type { Limit } from '../../algorithms/algorithm.js'
import type { Check, Refund, Renewal } from '../../check/check.js'
import type { PendingCheck } from '../../check/pending-check.js'
import type { NamedLimit, Plan } from '../../check/plan.js'
import type { KeyedState } from '../../subject/key.js'
import { type Script, scripts } from './scripts.gen.js'

/** The keys and arguments of one script call. */
export interface ScriptCall {
  readonly keys: string[]
  readonly args: string[]
}

/** A call of one of the scripts that decide checks. */
export interface ChecksCall extends ScriptCall {
  readonly script: Script
}

type KeyOf = (state: KeyedState) => string

/** Encodes checks for the script that decides them fastest. */
export function encodeChecks(
  checks: readonly PendingCheck[],
  isPeek: boolean,
  keyOf: KeyOf,
  clockUs: string,
): ChecksCall {
  const [first] = checks
  if (!isPeek && first !== undefined && first.asked.isSingle && areAlike(checks, first)) {
    const { name, limit } = first.asked.limits[0] as NamedLimit
    const { script } = limit.algorithm.wire
    const units = first.unitsOf(0)
    if (script !== null && units > 0) {
      const keys: string[] = []
      for (const check of checks) keys.push(keyOf({ subject: check.subject, scope: check.scopeOf(0), name }))
      return { script: scripts[script], keys, args: oneLimitArgs(limit, units, clockUs) }
    }
  }
  return { script: isPeek ? scripts.peek : scripts.decide, ...encodeAnyChecks(checks, keyOf, clockUs) }
}

/** Whether all checks take the same units of the same plan. */
function areAlike(checks: readonly PendingCheck[], first: PendingCheck): boolean {
  for (const check of checks) if (!isAlike(check, first)) return false
  return true
}

function isAlike(one: PendingCheck, other: PendingCheck): boolean {
  if (one.asked !== other.asked || one.cost !== other.cost) return false
  const units = one.more?.units ?? null
  const others = other.more?.units ?? null
  if (units === others) return true
  return units !== null && others !== null && units.every((unit, index) => unit === others[index])
}

/** Arguments of the scripts for one limit, without those that need not be said: each takes Redis as long as some arithmetic. */
function oneLimitArgs(limit: Limit, units: number, clockUs: string): string[] {
  const args = [String(limit.limit), String(limit.algorithm.wire.span(limit))]
  if (clockUs !== '') args.push(numberText(units), clockUs)
  else if (units !== 1) args.push(numberText(units))
  return args
}

/**
 * Encodes the arguments of decide.lua and peek.lua. Limits are sent once, however many checks share them, and so is the
 * shape of checks of the same plan one behind the other.
 */
function encodeAnyChecks(checks: readonly PendingCheck[], keyOf: KeyOf, clockUs: string): ScriptCall {
  const limits = new LimitList()
  const keys: string[] = []
  const body: string[] = []
  let last: PendingCheck | null = null
  let countAt = 0
  let alike = 0
  for (const check of checks) {
    const { asked: plan } = check
    for (let index = 0; index < plan.limits.length; index++) keys.push(keyOf(check.checkOf(index)))
    if (plan.isSingle) {
      const { limit } = plan.limits[0] as NamedLimit
      const units = check.unitsOf(0)
      if (units === 1) body.push(limits.negative(limit))
      else body.push('0', limits.number(limit), numberText(units))
      last = null
    } else if (last !== null && isAlike(check, last)) {
      body[countAt] = String(++alike)
    } else {
      last = check
      countAt = body.length
      alike = 1
      body.push('1')
      encodeShape(check, plan, body, limits)
    }
  }
  return { keys, args: [clockUs, ...limits.encoded(), ...body] }
}

/** Encodes limits and units of a check: its alternatives, then its shadow limits. */
function encodeShape(check: PendingCheck, plan: Plan, body: string[], limits: LimitList): void {
  body.push(numberText(plan.ends.length))
  let from = 0
  for (const end of [...plan.ends, plan.limits.length]) {
    body.push(numberText(end - from))
    for (let index = from; index < end; index++) {
      body.push(limits.number((plan.limits[index] as NamedLimit).limit), numberText(check.unitsOf(index)))
    }
    from = end
  }
}

/** Encodes the arguments of refund.lua. */
export function encodeRefunds(refunds: readonly Refund[], keyOf: KeyOf, clockUs: string): ScriptCall {
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
export function encodeRenewals(renewals: readonly Renewal[], keyOf: KeyOf, clockUs: string): ScriptCall {
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
export function encodeReset(checks: readonly Check[], keyOf: KeyOf, clockUs: string): ScriptCall {
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

  /** Four numbers a limit: algorithm, limit, window or refill per second, parts. */
  encoded(): string[] {
    const encoded = [String(this.#numbers.size)]
    for (const limit of this.#numbers.keys()) {
      const { wire } = limit.algorithm
      encoded.push(wire.code, String(limit.limit), String(wire.span(limit)), String(wire.parts(limit)))
    }
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
