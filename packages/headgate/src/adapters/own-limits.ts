import { createEnforce, type Enforce, type Framework, type Outcome } from './enforce.js'
import { limiterOptions } from './inline-limit.js'
import type { AnyOptions } from './options.js'

/** The limit of a route: options that replace the app's, a limit in one line, or `false` for none. */
export type OwnLimit<Native> = Partial<AnyOptions<Native>> | false

const PASSES: Outcome = { allowed: true, decision: null, headers: [], ended: null, reserveTokens: null }
const unlimited = (): Outcome => PASSES

/** What says which limits are charged: a route replaces all of it by a limiter or a limit of its own. */
const LIMITS = ['limiter', 'policy', 'tier', 'onStoreFailure', 'also', 'limit', 'window', 'name', 'store']

/** Options that a route's option displaces, because they exclude each other. */
const IN_PLACE_OF: Readonly<Record<string, readonly string[]>> = {
  limiter: LIMITS,
  limit: LIMITS,
  policy: ['tier'],
  tier: ['policy'],
  scope: ['perRoute'],
  perRoute: ['scope'],
  subject: ['identify'],
  identify: ['subject', 'trustedProxies', 'forwardedHeader'],
  trustedProxies: ['subject', 'identify'],
  forwardedHeader: ['subject', 'identify'],
}

/**
 * Creates the function that finds the enforcement of a route, by its own options and its name. Throws for invalid options
 * of the route, by name. Without options of the app, only such routes are limited.
 */
export function createOwnLimits<Native>(
  options: AnyOptions<Native> | undefined,
  framework: Framework<Native>,
): (own: OwnLimit<Native> | undefined, place?: string) => Enforce<Native> {
  const general = options === undefined ? unlimited : createEnforce(options, framework)
  const ofRoutes = new WeakMap<object, Map<string | undefined, Enforce<Native>>>()
  return (own, place) => {
    if (own === undefined) return general
    if (own === false) return unlimited
    let ofPlaces = ofRoutes.get(own)
    if (ofPlaces === undefined) {
      ofPlaces = new Map()
      ofRoutes.set(own, ofPlaces)
    }
    let enforce = ofPlaces.get(place)
    if (enforce === undefined) {
      enforce = createEnforce(limiterOptions(withOwn(options, own), framework, place), framework)
      ofPlaces.set(place, enforce)
    }
    return enforce
  }
}

function withOwn<Native>(options: AnyOptions<Native> | undefined, own: object): AnyOptions<Native> {
  const merged: Record<string, unknown> = { ...options }
  for (const name of Object.keys(own).flatMap(name => IN_PLACE_OF[name] ?? [])) delete merged[name]
  return Object.assign(merged, own) as object as AnyOptions<Native>
}
