import type { FailureMode } from '../engine/question.js'
import { type Ask, parseAlso, parsePolicyOrTier, parseScope, parseTimes } from '../limiter/ask.js'
import type { FaultFacts } from '../limiter/limiter.js'
import { type PolicyOrTier, parseFailureMode } from '../policy/config.js'
import type { DecidedPolicy } from '../policy/policies.js'
import type { RequestFacts } from '../policy/request-facts.js'
import { type Resolution, resolve, resolveAsk } from '../policy/resolve.js'
import { ANONYMOUS } from '../subject/names-nobody.js'
import type { Clock } from '../time/clock.js'
import { canonicalFacts } from './canonical-facts.js'
import type { CurrentConfig } from './current-config.js'

export interface ResolverOptions {
  readonly clock: Clock
  /** The failure mode if the file names none. */
  readonly onStoreFailure: FailureMode | undefined
  warn(message: string, about?: string): void
}

/** Finds the limits of a request, by the current policy file, overrides and switches. */
export class Resolver {
  constructor(
    private readonly current: CurrentConfig,
    private readonly options: ResolverOptions,
  ) {}

  /** Resolves by the rules. */
  request(facts: RequestFacts): Resolution {
    const { active, nameSubject } = this.current.now
    const { clock, warn } = this.options
    return resolve(active, canonicalFacts(facts, { nameSubject, tiers: active.tiers, warn }), clock.nowUs())
  }

  /** Resolves by the policy or tier that is named, bypassing the rules. */
  ask(subject: string, ask: Ask<string, string>, cost: number): Resolution {
    const { active, nameSubject } = this.current.now
    const also = parseAlso(ask).map(one => ({
      subject: nameSubject(one.subject),
      charge: this.policyOrTier(one),
      times: one.times === undefined ? undefined : parseTimes(one.times),
    }))
    const charge = this.policyOrTier(ask)
    const scope = parseScope(ask.scope)
    const resolution = resolveAsk(active, { subject, charge, scope, cost, also }, this.options.clock.nowUs())
    if (ask.onStoreFailure === undefined) return resolution
    const { alternatives, shadow } = resolution.question
    const onStoreFailure = parseFailureMode(ask.onStoreFailure)
    return { ...resolution, question: { alternatives, shadow, onStoreFailure } }
  }

  /** Throws for a name that the file does not have. */
  policyOrTier(named: PolicyOrTier): PolicyOrTier {
    return parsePolicyOrTier(named, this.current.now.active)
  }

  /**
   * Whether a request that could not be asked about must be refused. One that the rules let pass unasked still
   * passes.
   */
  refusesFault({ onStoreFailure, method, path }: FaultFacts & Partial<RequestFacts> = {}): boolean {
    if (onStoreFailure !== undefined) return onStoreFailure === 'closed'
    const byDefault = this.current.now.config.onStoreFailure ?? this.options.onStoreFailure
    try {
      const facts = { subject: ANONYMOUS, ...(method && { method }), ...(path && { path }) }
      const { question } = this.request(facts)
      const isAsked = question.alternatives.every(checks => checks.length > 0)
      return isAsked && (question.onStoreFailure ?? byDefault) === 'closed'
    } catch {
      // The facts themselves may be what failed.
      return byDefault === 'closed' && this.current.now.config.mode !== 'shadow'
    }
  }
}

/** Describes the rules that led to a decision. */
export function decidedPolicy({
  levels,
  tier,
  unasked,
  headers,
  refundIf,
  question,
}: Resolution): DecidedPolicy {
  const spoke = levels.find(({ part }) => part === 'decides') ?? levels[0]
  const onlyShadow =
    unasked === null && question.shadow.length > 0 && levels.every(({ part }) => part !== 'decides')
  return {
    name: spoke?.level.configured.policy.name ?? '',
    limits: [],
    tier,
    rule: spoke?.level.rule ?? null,
    unasked: onlyShadow ? 'shadow' : unasked,
    headers,
    refundIf,
  }
}
