/**
 * Resolves every way in which a server may read a request: with the method it was sent with or one it claims, and
 * with its path in every reading. Readings that lead to the same rule are one route, and almost every request has
 * only one.
 */

import type { ActiveConfig } from './active-config.js'
import type { RuleQuery } from './candidates.js'
import type { FoundRule } from './compiled-config.js'
import type { PathView } from './path-index.js'
import type { PathReading } from './path-readings.js'
import type { CanonicalFacts } from './request-facts.js'

/** One way to read a request. */
export interface RequestReading {
  readonly method: string | null
  readonly segments: readonly string[] | null
}

/** The rule and cost that one or several readings of a request lead to. */
export interface FoundRoute {
  /** The route's rule, or null if none matches. */
  readonly rule: FoundRule['value'] | null
  /** Whether the file skips such requests. */
  readonly isSkippable: boolean
  /** The highest cost that the file's list of costs gives these readings. */
  readonly listedCost: number
  readonly readings: readonly RequestReading[]
}

interface Growing extends FoundRoute {
  listedCost: number
  readonly readings: RequestReading[]
}

/** Finds the distinct routes of a request. */
export function findRoutes(
  active: ActiveConfig,
  facts: Pick<CanonicalFacts, 'methods' | 'path'>,
  asked: Omit<RuleQuery, 'method'>,
): readonly FoundRoute[] {
  const path = facts.path === 'too-many' ? null : facts.path
  const found: Growing[] = []
  for (const method of distinctMethods(facts.methods, active.namedMethods)) {
    const query = { ...asked, method }
    for (const reading of path ?? [null]) {
      for (const view of reading === null ? [null] : viewsOf(reading, active)) {
        const rule = active.routeRules.find(view, query)?.value ?? null
        const isSkippable = isSkipped(active, view, method)
        const listedCost = view === null ? 1 : costOf(active, view, query)
        const here = { method, segments: view?.segments ?? null }
        const known = found.find(other => other.rule === rule && other.isSkippable === isSkippable)
        if (known === undefined) found.push({ rule, isSkippable, listedCost, readings: [here] })
        else {
          known.listedCost = Math.max(known.listedCost, listedCost)
          known.readings.push(here)
        }
      }
    }
  }
  return found
}

/** The ways in which servers with this reading may still disagree about where it leads. */
function viewsOf(
  { segments, folded, hasEmpty }: PathReading,
  { hasCapitals }: ActiveConfig,
): readonly PathView[] {
  const views: PathView[] = []
  for (const emptyParameters of hasEmpty ? [true, false] : [false]) {
    views.push({ segments, ignoresCase: false, emptyParameters })
    if (hasCapitals || segments !== folded)
      views.push({ segments: folded, ignoresCase: true, emptyParameters })
  }
  return views
}

/**
 * Keeps one representative of the methods that no rule names, since they are all treated alike. A claimed method
 * may be any text.
 */
function distinctMethods(
  methods: readonly (string | null)[],
  named: ReadonlySet<string>,
): readonly (string | null)[] {
  if (methods.length === 1) return methods
  const seen = new Set<string | null>()
  return methods.filter(method => {
    const kind = method === null || named.has(method) ? method : ''
    if (seen.has(kind)) return false
    seen.add(kind)
    return true
  })
}

function costOf({ costs }: ActiveConfig, view: PathView, query: RuleQuery): number {
  return costs.isEmpty ? 1 : (costs.find(view, query)?.value ?? 1)
}

const NOBODY: RuleQuery = { method: null, tier: null, scope: null, subjectTypes: [] }

/** Whether the file skips such a request, unless a rule matches its path. */
function isSkipped(active: ActiveConfig, view: PathView | null, method: string | null): boolean {
  const { skippedPrefixes, skippedExtensions } = active
  if (view === null) return false
  if (!skippedPrefixes.isEmpty && skippedPrefixes.find(view, NOBODY) !== null) return true
  if (skippedExtensions.size === 0 || (method !== 'GET' && method !== 'HEAD')) return false
  return skippedExtensions.has(extensionOf(view.segments.at(-1) ?? ''))
}

function extensionOf(segment: string): string {
  const dot = segment.lastIndexOf('.')
  return dot <= 0 ? '' : segment.slice(dot + 1).toLowerCase()
}
