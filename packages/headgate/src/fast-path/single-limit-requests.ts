/**
 * The commonest request: one ordinary caller, a path that every server reads alike, and one limit to ask one unit
 * of. It need not be resolved each time: the policy that answers it is the same for all callers.
 */
import type { ActiveConfig } from '../policy/active-config.js'
import type { RuleQuery } from '../policy/candidates.js'
import type { RuleConfig } from '../policy/config.js'
import { callerLevel, findCaller, routeLevel } from '../policy/find-levels.js'
import { isSkipped } from '../policy/found-routes.js'
import type { Level } from '../policy/level.js'
import { targetKey } from '../policy/override.js'
import type { PathView } from '../policy/path-index.js'
import { plainPath } from '../policy/path-readings.js'
import type { DecidedPolicy } from '../policy/policies.js'
import type { RequestFacts } from '../policy/request-facts.js'
import { BoundedMap } from '../store/bounded-map.js'
import { isIPv6Caller } from '../subject/ip-network.js'
import type { SubjectNamer } from '../subject/subject.js'
import { typeOf } from '../subject/subject-type.js'
import { SingleLimitPolicy, type UnitDoor } from './single-limit-policy.js'

/** Every way to read `/`: to some servers its one segment is an empty parameter. */
const ROOT: readonly PathView[] = [
  { segments: [''], ignoresCase: false, emptyParameters: true },
  { segments: [''], ignoresCase: false, emptyParameters: false },
  { segments: [], ignoresCase: false, emptyParameters: false },
]
const ROOT_PATH = /^\/(?:\?|$)/

/** How many paths are cached. Finding the rules again takes four times as long as the decision. */
const MAX_PATHS = 4_096
/** Longer paths are resolved each time: caching them would let callers fill the memory. */
const MAX_PATH_LENGTH = 256

/** The policy that the last request for a path was resolved to, and the facts it depends on. */
class ResolvedPath {
  private readonly method: string | undefined
  private readonly tier: string | undefined
  private readonly typeStart: string

  constructor(
    { method, tier }: RequestFacts,
    subject: string,
    readonly policy: SingleLimitPolicy | null,
  ) {
    this.method = method
    this.tier = tier
    this.typeStart = `${typeOf(subject)}:`
  }

  isFor({ method, tier }: RequestFacts, subject: string): boolean {
    return method === this.method && tier === this.tier && subject.startsWith(this.typeStart)
  }
}

/** Plain requests under the current configuration: another file or other switches need another instance. */
export class SingleLimitRequests {
  /**
   * By the rule of the route, or null, and by the caller's tier. Null for those that have to be resolved in full.
   */
  private readonly policies = new Map<RuleConfig | null, Map<string | null, SingleLimitPolicy | null>>()
  /** The policies of recent paths, used while no override is set. */
  private readonly resolved = new BoundedMap<ResolvedPath>(MAX_PATHS)
  private readonly isPossible: boolean

  constructor(
    private readonly active: ActiveConfig,
    private readonly door: UnitDoor,
    private readonly nameSubject: SubjectNamer,
  ) {
    const { control, config, hasCapitals } = active
    const isOn = control.enabled && control.multiplier > 0
    // A pattern with a capital leads servers to different rules, even for a path that has none.
    this.isPossible = isOn && !hasCapitals && config.levels === 'most-specific'
  }

  /** Returns the policy that decides a request; null for one that has to be resolved in full. */
  policyFor(facts: RequestFacts): SingleLimitPolicy | null {
    if (!this.isPossible || !isPlain(facts)) return null
    const subject: string = facts.subject
    if (this.isSpecial(subject)) return null
    const { path } = facts
    if (path === undefined || facts.scope !== undefined || this.active.overrides.size > 0) {
      return this.resolve(facts, subject)
    }
    const query = path.indexOf('?')
    const key = query < 0 ? path : path.slice(0, query)
    const known = this.resolved.get(key)
    if (known?.isFor(facts, subject)) return known.policy
    const policy = this.resolve(facts, subject)
    if (key.length <= MAX_PATH_LENGTH) this.resolved.set(key, new ResolvedPath(facts, subject, policy))
    return policy
  }

  private resolve(facts: RequestFacts, subject: string): SingleLimitPolicy | null {
    const { active } = this
    const { method, path, scope = null } = facts
    if (facts.tier !== undefined && !active.tiers.has(facts.tier)) return null
    const isRoot = path !== undefined && ROOT_PATH.test(path)
    const segments = path === undefined || isRoot ? null : plainPath(path)
    if (segments === null && path !== undefined && !isRoot) return null
    const view = segments === null ? null : { segments, ignoresCase: false, emptyParameters: false }
    const asked = {
      method: method === undefined ? null : method.toUpperCase(),
      tier: facts.tier ?? active.config.default.tier ?? null,
      scope,
      subjectTypes: [typeOf(subject)],
    }
    const rule = isRoot ? this.ruleOfRoot(asked) : this.ruleFor(view, asked)
    return rule === undefined ? null : this.policyOf(rule, asked)
  }

  /** Whether the file or an operator mentions the caller, or it has networks around it. */
  private isSpecial(subject: string): boolean {
    const { subjects, overrides } = this.active
    if (isIPv6Caller(subject)) return true
    if (subjects.size === 0 && overrides.size === 0) return false
    if (!this.nameSubject.isOwnName(subject) || subjects.has(subject)) return true
    return (
      overrides.size > 0 && overrides.find(targetKey({ subject }), this.door.context.clock.nowUs()) !== null
    )
  }

  /** Returns the rule of the route, or null; undefined if more than a rule applies. */
  private ruleFor(view: PathView | null, asked: RuleQuery): RuleConfig | null | undefined {
    const { routeRules, callerRules, costs, overrides } = this.active
    const rule = routeRules.find(view, asked)?.value ?? null
    if (rule === null && !callerRules.isEmpty) return undefined
    if (isSkipped(this.active, view, asked.method)) return undefined
    if (view !== null && !costs.isEmpty && costs.find(view, asked) !== null) return undefined
    if (rule === null || overrides.size === 0) return rule
    const isOverridden =
      overrides.find(targetKey({ rule: rule.name }), this.door.context.clock.nowUs()) !== null
    return isOverridden ? undefined : rule
  }

  /** The same if every reading of `/` leads to it. */
  private ruleOfRoot(asked: RuleQuery): RuleConfig | null | undefined {
    const [first, ...others] = ROOT.map(view => this.ruleFor(view, asked))
    return others.every(rule => rule === first) ? first : undefined
  }

  private policyOf(rule: RuleConfig | null, asked: RuleQuery): SingleLimitPolicy | null {
    let byTier = this.policies.get(rule)
    if (byTier === undefined) {
      byTier = new Map()
      this.policies.set(rule, byTier)
    }
    let policy = byTier.get(asked.tier)
    if (policy === undefined) {
      policy = this.makePolicy(rule, asked)
      byTier.set(asked.tier, policy)
    }
    return policy
  }

  private makePolicy(rule: RuleConfig | null, asked: RuleQuery): SingleLimitPolicy | null {
    const { active, door, nameSubject } = this
    const nowUs = door.context.clock.nowUs()
    const caller = findCaller(active, { subjects: [], tier: asked.tier }, nowUs)
    const level =
      rule === null ? callerLevel(active, asked, caller, nowUs) : routeLevel(active, rule, caller, nowUs)
    if (!asksOneUnit(level)) return null
    const { name, limits } = level.configured.policy
    const { headers, refundIf } = level
    const decided: DecidedPolicy = {
      name,
      limits,
      tier: asked.tier,
      rule: level.rule,
      unasked: null,
      headers,
      refundIf,
    }
    return new SingleLimitPolicy(decided, door, nameSubject.isOwnName)
  }
}

/**
 * Whether the level is a single limit of the caller's own, in the scope `global`, with no shadow, override or
 * further subject.
 */
function asksOneUnit(level: Level): boolean {
  const { policy, candidate } = level.configured
  return (
    level.override === null &&
    policy.limits.length === 1 &&
    candidate.length === 0 &&
    level.mode === 'enforce' &&
    level.enforcePercent === 100 &&
    level.onStoreFailure === null &&
    level.per === 'caller' &&
    level.scope === 'global' &&
    (level.cost ?? 1) === 1
  )
}

/**
 * Whether there is one caller by its text, no cost of its own, and no other method claimed. Mistakes are left to
 * the code that names them.
 */
function isPlain(facts: RequestFacts): facts is RequestFacts & { readonly subject: `${string}:${string}` } {
  if (typeof facts !== 'object' || facts === null || typeof facts.subject !== 'string') return false
  const { claimedMethods, cost, method, path, perAddress } = facts
  if (perAddress !== undefined) return false
  if (cost !== undefined || (claimedMethods !== undefined && claimedMethods.length !== 0)) return false
  return (
    (method === undefined || typeof method === 'string') && (path === undefined || typeof path === 'string')
  )
}
