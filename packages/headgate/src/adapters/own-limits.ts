import { createEnforce, type Enforce, type Framework, type Outcome } from './enforce.js'
import type { AnyOptions } from './options.js'

/** The limit of a route: options that replace the app's, or `false` for none. */
export type OwnLimit<Native> = Partial<AnyOptions<Native>> | false

const PASSES: Outcome = { allowed: true, decision: null, headers: [], ended: null }
const unlimited = (): Outcome => PASSES

/** Options that a route's option displaces, because they exclude each other. */
const IN_PLACE_OF: Readonly<Record<string, readonly string[]>> = {
  limiter: ['policy', 'tier', 'onStoreFailure', 'also'],
  policy: ['tier'],
  tier: ['policy'],
  scope: ['perRoute'],
  perRoute: ['scope'],
  subject: ['identify'],
  identify: ['subject', 'trustedProxies', 'forwardedHeader'],
  trustedProxies: ['subject', 'identify'],
  forwardedHeader: ['subject', 'identify'],
}

/** Creates the function that finds the enforcement of a route. Throws for invalid options of the route, by name. */
export function createOwnLimits<Native>(
  options: AnyOptions<Native>,
  framework: Framework<Native>,
): (own: OwnLimit<Native> | undefined) => Enforce<Native> {
  const general = createEnforce(options, framework)
  const ofRoutes = new WeakMap<object, Enforce<Native>>()
  return own => {
    if (own === undefined) return general
    if (own === false) return unlimited
    let enforce = ofRoutes.get(own)
    if (enforce === undefined) {
      enforce = createEnforce(withOwn(options, own), framework)
      ofRoutes.set(own, enforce)
    }
    return enforce
  }
}

function withOwn<Native>(options: AnyOptions<Native>, own: object): AnyOptions<Native> {
  const merged: Record<string, unknown> = { ...options }
  for (const name of Object.keys(own).flatMap(name => IN_PLACE_OF[name] ?? [])) delete merged[name]
  return Object.assign(merged, own) as object as AnyOptions<Native>
}
