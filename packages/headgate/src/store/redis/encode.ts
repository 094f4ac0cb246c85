import type { Limit } from '../../algorithms/algorithm.js'
import type { Check, Credit, Refund, Renewal } from '../../check/check.js'
import type { PendingCheck } from '../../check/pending-check.js'
import type { NamedLimit } from '../../check/plan.js'
import type { KeyedState } from '../../subject/key.js'
import { type Script, scripts } from './scripts.gen.js'
import type { StraightLine, StraightLines } from './straight-line.js'

/** The keys and arguments of one script call. */
export interface ScriptCall {
  readonly keys: string[]
  readonly args: string[]
}

/** A call that decides checks of one plan and one cost, or that looks at any. */
export interface ChecksCall extends ScriptCall {
  readonly script: Script
  readonly checks: readonly PendingCheck[]
  /** The straight-line script; null for decide.lua and peek.lua. */
  readonly line: StraightLine | null
}

type KeyOf = (state: KeyedState) => string

/** Numbers of a limit in the arguments of decide.lua and the like; `@kind` of no Lua file names more. */
const NUMBERS = 3

/** Encodes checks as calls: one for each plan and cost among them, mostly one in all. */
export function encodeChecks(
  checks: readonly PendingCheck[],
  isPeek: boolean,
  lines: StraightLines,
  keyOf: KeyOf,
  clockUs: string,
  isClockKnown: boolean,
  serverUs: number,
): readonly ChecksCall[] {
  if (isPeek) return [peekCall(checks, keyOf, clockUs, serverUs)]
  const first = checks[0] as PendingCheck
  if (areAlike(checks, first)) return [chargeCall(checks, lines, keyOf, clockUs, isClockKnown, serverUs)]
  return groupsOf(checks).map(group => chargeCall(group, lines, keyOf, clockUs, isClockKnown, serverUs))
}

function areAlike(checks: readonly PendingCheck[], first: PendingCheck): boolean {
  for (const check of checks) if (!isAlike(check, first)) return false
  return true
}

/** Whether two checks take the same units of the same plan. */
function isAlike(one: PendingCheck, other: PendingCheck): boolean {
  if (one.asked !== other.asked || one.cost !== other.cost) return false
  const units = one.more?.units ?? null
  const others = other.more?.units ?? null
  if (units === others) return true
  return units !== null && others !== null && units.every((unit, index) => unit === others[index])
}

function groupsOf(checks: readonly PendingCheck[]): PendingCheck[][] {
  const groups: PendingCheck[][] = []
  for (const check of checks) {
    const group = groups.find(([first]) => isAlike(first as PendingCheck, check))
    if (group === undefined) groups.push([check])
    else group.push(check)
  }
  return groups
}

function chargeCall(
  checks: readonly PendingCheck[],
  lines: StraightLines,
  keyOf: KeyOf,
  clockUs: string,
  isClockKnown: boolean,
  serverUs: number,
): ChecksCall {
  const first = checks[0] as PendingCheck
  const keys = keysOf(checks, keyOf)
  const line = lines.of(first.asked)
  const cost = line === null ? null : costOf(first)
  if (line === null || cost === null) {
    return { script: scripts.decide, keys, args: decideArgs(first, clockUs, serverUs), checks, line: null }
  }
  // An argument that need not be said takes Redis as long as some arithmetic.
  const asksTime = line.hasAlone && checks.length === 1 && !isClockKnown
  const args = [...line.args]
  for (const sent of line.sent) args.push(sent(serverUs))
  if (cost !== 1 || asksTime) args.push(String(cost))
  if (clockUs !== '') args.push(clockUs)
  else if (asksTime) args.push('time')
  return { script: line.script, keys, args, checks, line }
}

/** The units that every limit takes that does not count requests; null if the units do not follow from one cost. */
function costOf(check: PendingCheck): number | null {
  const { limits } = check.asked
  let cost: number | null = null
  for (let index = 0; index < limits.length; index++) {
    const units = check.unitsOf(index)
    if ((limits[index] as NamedLimit).countsRequests) {
      if (units !== 1) return null
    } else {
      if (units === 0 || (cost !== null && cost !== units)) return null
      cost = units
    }
  }
  return cost ?? 1
}

function keysOf(checks: readonly PendingCheck[], keyOf: KeyOf): string[] {
  const keys: string[] = []
  for (const check of checks) {
    const { limits } = check.asked
    for (let index = 0; index < limits.length; index++) {
      const { name } = limits[index] as NamedLimit
      keys.push(keyOf({ subject: check.subjectOf(index), scope: check.scopeOf(index), name }))
    }
  }
  return keys
}

function decideArgs(check: PendingCheck, clockUs: string, serverUs: number): string[] {
  const { ends, limits } = check.asked
  const args = [clockUs, String(ends.length), ...ends.map(String), String(limits.length)]
  addLimits(check, args, serverUs)
  return args
}

function peekCall(
  checks: readonly PendingCheck[],
  keyOf: KeyOf,
  clockUs: string,
  serverUs: number,
): ChecksCall {
  const args = [clockUs]
  for (const check of checks) addLimits(check, args, serverUs)
  return { script: scripts.peek, keys: keysOf(checks, keyOf), args, checks, line: null }
}

/** For each limit: its kind, units and numbers. */
function addLimits(check: PendingCheck, args: string[], serverUs: number): void {
  for (const [index, { limit }] of check.asked.limits.entries()) {
    const [kind, ...numbers] = limitArgs(limit, serverUs)
    args.push(kind as string, String(check.unitsOf(index)), ...numbers)
  }
}

/** Kind and numbers of a limit, as many for each. */
function limitArgs(limit: Limit, serverUs: number): string[] {
  const { kind, numbers, sent } = limit.algorithm.wire
  const args = [kind, ...numbers(limit).map(String)]
  if (sent !== undefined) args.push(sent(limit, serverUs))
  while (args.length <= NUMBERS) args.push('')
  return args
}

/** Encodes the arguments of refund.lua. */
export function encodeRefunds(
  refunds: readonly Refund[],
  keyOf: KeyOf,
  clockUs: string,
  serverUs: number,
): ScriptCall {
  const args = refunds.flatMap(({ check, units, chargedAtUs, heldSinceUs }) => [
    ...limitArgs(check.limit, serverUs),
    String(units),
    String(chargedAtUs ?? -1),
    String(heldSinceUs ?? -1),
  ])
  return { keys: refunds.map(refund => keyOf(refund.check)), args: [clockUs, ...args] }
}

/** Encodes the arguments of renew.lua. */
export function encodeRenewals(
  renewals: readonly Renewal[],
  keyOf: KeyOf,
  clockUs: string,
  serverUs: number,
): ScriptCall {
  const args = renewals.flatMap(({ check, takenAtUs }) => [
    ...limitArgs(check.limit, serverUs),
    String(check.cost),
    String(takenAtUs),
  ])
  return { keys: renewals.map(({ check }) => keyOf(check)), args: [clockUs, ...args] }
}

/** Encodes the arguments of reset.lua: it reads each state as its limit says, so that no foreign data is deleted. */
export function encodeReset(
  checks: readonly Check[],
  keyOf: KeyOf,
  clockUs: string,
  serverUs: number,
): ScriptCall {
  return {
    keys: checks.map(keyOf),
    args: [clockUs, ...checks.flatMap(({ limit }) => limitArgs(limit, serverUs))],
  }
}

/** Encodes the arguments of credit.lua. The mark of an id is beside the state, in its slot. */
export function encodeCredit(credit: Credit, keyOf: KeyOf, clockUs: string, serverUs: number): ScriptCall {
  const { check, units, id, idForMs, isLasting } = credit
  const key = keyOf(check)
  return {
    keys: units === 0 ? [key] : [key, `${key}:credit:${id}`],
    args: [
      clockUs,
      ...limitArgs(check.limit, serverUs),
      String(units),
      isLasting ? '1' : '0',
      String(idForMs),
    ],
  }
}
