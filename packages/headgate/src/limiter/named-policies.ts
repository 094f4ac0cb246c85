import type { Check, Question } from '../engine/question.js'
import { makeQuestion, SingleQuestion } from '../engine/single-question.js'
import { HeadgateError } from '../errors/headgate-error.js'
import { parseFailureMode } from '../policy/config.js'
import { type Policy, type PolicyOptions, parsePolicies, parseTiers } from '../policy/policies.js'
import { unitsTaken, withoutRepeats } from '../policy/question-of.js'
import type { TierOptions } from '../policy/tiers.js'
import { sharedLimits } from '../policy/wider-limit.js'
import type { SubjectInput, SubjectNamer } from '../subject/subject.js'
import { type Ask, NOBODY_ELSE, parseAlso, parsePolicyOrTier, parseScope, parseTimes } from './ask.js'

export interface NamedPoliciesOptions {
  readonly policies?: Readonly<Record<string, PolicyOptions>> | undefined
  readonly tiers?: Readonly<Record<string, TierOptions>> | undefined
}

const NO_CHECKS: readonly Check[] = []

/** The policies and tiers of a limiter. Builds the question of an ask that names one of them. */
export class NamedPolicies {
  readonly policies: ReadonlyMap<string, Policy>
  readonly tiers: ReadonlyMap<string, Policy>

  /** Throws if there are none, and for invalid numbers. */
  constructor(
    options: NamedPoliciesOptions,
    private readonly nameSubject: SubjectNamer,
  ) {
    this.policies = parsePolicies(options.policies ?? {})
    this.tiers = parseTiers(options.tiers ?? {})
    if (this.policies.size + this.tiers.size === 0) {
      throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
        field: 'policies',
        expected: 'at least one policy or tier',
        got: 'none',
      })
    }
  }

  /** Returns the policy or tier of that name; throws if there is none. */
  find(named: { readonly policy?: string | undefined; readonly tier?: string | undefined }): Policy {
    const found = named?.tier === undefined ? this.policies.get(named?.policy as string) : undefined
    if (found !== undefined) return found
    return this.tiers.get(parsePolicyOrTier(named, this).tier as string) as Policy
  }

  question(policy: Policy, subjectInput: SubjectInput, ask: Ask<string, string>, cost: number): Question {
    const subject = this.nameSubject(subjectInput)
    const scope = parseScope(ask.scope)
    const also = parseAlso(ask)
    const [only, another] = policy.limits
    if (
      only !== undefined &&
      another === undefined &&
      also === NOBODY_ELSE &&
      ask.onStoreFailure === undefined
    ) {
      return new SingleQuestion(subject, scope, only.name, only.limit, unitsTaken(only.limit, cost))
    }
    const own = checksOf(policy, subject, scope, cost)
    const checks = also.length === 0 ? own : withoutRepeats([...own, ...this.others(also, scope, cost)])
    const onStoreFailure = ask.onStoreFailure === undefined ? null : parseFailureMode(ask.onStoreFailure)
    return makeQuestion([checks], NO_CHECKS, onStoreFailure)
  }

  /** Returns the checks of the further subjects. */
  private others(also: ReturnType<typeof parseAlso>, scope: string, cost: number): Check[] {
    return also.flatMap(one => {
      const { limits } = this.find(one)
      const shared = one.times === undefined ? limits : sharedLimits(limits, parseTimes(one.times))
      return checksOf({ limits: shared }, this.nameSubject(one.subject), scope, cost)
    })
  }
}

function checksOf({ limits }: Pick<Policy, 'limits'>, subject: string, scope: string, cost: number): Check[] {
  return limits.map(({ name, limit }) => ({ subject, scope, name, limit, cost: unitsTaken(limit, cost) }))
}
