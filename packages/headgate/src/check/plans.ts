import type { Limit } from '../algorithms/algorithm.js'
import { BoundedMap } from './bounded-map.js'
import type { Check, FailureMode } from './check.js'
import { PendingCheck, type Target } from './pending-check.js'
import { type CheckContext, NamedLimit, NO_LABELS, NOBODY_LISTENS, Plan, type PlanLabels } from './plan.js'

/** What a request is held to, limit by limit, as plain data: what resolving a request comes to, and what a store is asked. */
export interface Question {
  /** The first alternative whose checks all fit is charged as a whole, never in part. */
  readonly alternatives: readonly (readonly Check[])[]
  /** Each is charged if it fits, whatever becomes of the request, and never binds. */
  readonly shadow: readonly Check[]
  /** Default: the store's own. */
  readonly onStoreFailure?: FailureMode | null | undefined
}

/** What few requests say beside it. */
export interface PendingOptions {
  readonly labels?: PlanLabels
  /** The cost of the request. Default: the highest of its checks. */
  readonly cost?: number
  readonly isPeek?: boolean
  readonly isCompared?: boolean
}

/** Plans made of different limits or labels; what is not asked lately is made anew. */
const MAX_PLANS = 10_000

const NOBODY: Target = { subject: '', scope: 'global' }

/** Makes plans of lists of checks, each once, so that two requests that are held to the same have the same plan. */
export class Plans {
  private readonly plans = new BoundedMap<Plan>(MAX_PLANS)
  private readonly named = new WeakMap<Limit, NamedLimit[]>()

  constructor(readonly context: CheckContext) {}

  /** A limit under its name, always the same object. */
  limit(name: string, limit: Limit): NamedLimit {
    let known = this.named.get(limit)
    if (known === undefined) {
      known = []
      this.named.set(limit, known)
    }
    let found = known.find(one => one.name === name)
    if (found === undefined) {
      found = new NamedLimit(name, limit)
      known.push(found)
    }
    return found
  }

  /** The check of a list. */
  pending(list: Question, options: PendingOptions = {}): PendingCheck {
    const { labels = NO_LABELS, isPeek = false, isCompared = false } = options
    const { alternatives, shadow, onStoreFailure = null } = list
    const all =
      alternatives.length === 1 && shadow.length === 0
        ? (alternatives[0] ?? [])
        : [...alternatives, shadow].flat()
    const { subject, scope } = all[0] ?? NOBODY
    const cost = options.cost ?? all.reduce((most, check) => Math.max(most, check.cost), 0)
    const others: Target[] = []
    const targets: number[] = []
    const limits: NamedLimit[] = []
    let isOfCost = true
    let key = ''
    for (const check of all) {
      const limit = this.limit(check.name, check.limit)
      const target = targetOf(check, subject, scope, others)
      limits.push(limit)
      targets.push(target)
      if (limit.unitsOf(cost) !== check.cost) isOfCost = false
      key += `${limit.number}@${target} `
    }
    const ends: number[] = []
    for (const checks of alternatives) ends.push((ends.at(-1) ?? 0) + checks.length)
    key += `|${ends}|${onStoreFailure}|${isCompared}|${labels === NO_LABELS ? '' : textOf(labels)}`
    let plan = this.plans.get(key)
    if (plan === undefined) {
      const paying = others.length === 0 ? undefined : targets
      plan = new Plan(this.context, labels, limits, ends, paying, onStoreFailure, isCompared)
      this.plans.set(key, plan)
    }
    const isPlain = isOfCost && !isPeek && others.length === 0 && scope === 'global'
    const units = isOfCost ? null : all.map(check => check.cost)
    const more = isPlain ? null : { scope, isPeek, others, units, onStoreFailure: null }
    return new PendingCheck(plan, subject, cost, more)
  }
}

function textOf(labels: PlanLabels): string {
  const { policy, tier, rule, bypass, headers, refundIf, resetIf, tokens, wait } = labels
  return JSON.stringify([policy, tier, rule, bypass, headers, refundIf, resetIf, tokens, wait])
}

function targetOf({ subject, scope }: Check, caller: string, callersScope: string, others: Target[]): number {
  if (subject === caller && scope === callersScope) return 0
  let index = others.findIndex(other => other.subject === subject && other.scope === scope)
  if (index < 0) index = others.push({ subject, scope }) - 1
  return index + 1
}

/**
 * One object of each class that is made for every request. If none is alive at a full garbage collection, V8 drops the shape
 * of the class and the code compiled for it, and the next thousands of requests take ten times as long.
 */
const kept: object[] = []

function keepShapes(): void {
  const check = new Plans(NOBODY_LISTENS).pending({ alternatives: [[]], shadow: [] })
  check.charged = 0
  check.settle('memory')
  kept.push(check, check.decision)
}

keepShapes()
