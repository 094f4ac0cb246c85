/** Policies that a file may name without defining them. What it defines itself takes precedence. */
import type { BanLimit } from '../algorithms/ban.js'
import { login } from '../policy/login.js'
import type { LongPolicyOptions } from '../policy/policies.js'
import type { ReadPolicy } from './file/policy.js'
import type { ReadFile } from './file/policy-file.js'
import type { ReadRule } from './file/rule.js'

/** Their names, for the types of what is written in code. */
export type ReadyPolicyName = 'login' | 'login-address'

const LOGIN: Readonly<Record<ReadyPolicyName, LongPolicyOptions>> = login()
const READY: ReadonlyMap<string, ReadPolicy> = new Map(
  Object.entries(LOGIN).map(([name, { limits, ban }]) => [
    name,
    { limits: [limits].flat(), ...(ban !== undefined && { ban: ban as BanLimit }) },
  ]),
)

export const READY_POLICIES: ReadonlySet<string> = new Set(READY.keys())

/**
 * What a rule that charges `login` says unless it says otherwise: an account at an address is charged as one, the address beside it,
 * and success forgets.
 */
const OF_LOGIN: Pick<ReadRule, 'per' | 'also' | 'resetIf'> = {
  per: ['user', 'ip'],
  also: [{ subject: 'ip', policy: 'login-address' }],
  resetIf: [{ from: 200, to: 399 }],
}
const RULES: ReadonlyMap<string, typeof OF_LOGIN> = new Map([['login', OF_LOGIN]])

/**
 * Returns the file with the ready policies that it names, and with what they bring to their rules, as if it had written them.
 * `isWritten` says whether a rule has a field, valid or not: in its place nothing is brought.
 */
export function withReadyPolicies(
  file: ReadFile,
  isWritten: (rule: number, field: string) => boolean,
): ReadFile {
  const own = file.policies ?? new Map<string, ReadPolicy>()
  const rules = file.rules?.map((rule, index) => {
    const { policy = '' } = rule
    if (own.has(policy)) return rule
    const brought = Object.entries(RULES.get(policy) ?? {}).filter(([field]) => !isWritten(index, field))
    return { ...Object.fromEntries(brought), ...rule }
  })
  const named = policiesCharged({ ...file, ...(rules !== undefined && { rules }) })
  const ready = [...READY].filter(([name]) => named.has(name) && !own.has(name))
  if (ready.length === 0) return file
  return { ...file, ...(rules !== undefined && { rules }), policies: new Map([...own, ...ready]) }
}

/** The policies that a file charges, by whatever part of it. */
export function policiesCharged(file: ReadFile): ReadonlySet<string | undefined> {
  const rules = (file.rules ?? []).flatMap(rule => [rule, ...(rule.also ?? []), ...(rule.tokens ?? [])])
  const charges = [...rules, ...(file.subjects?.values() ?? []), file.default, file.global]
  return new Set(charges.map(charge => charge?.policy))
}
