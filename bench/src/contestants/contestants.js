/** @typedef {import('./contestant.js').Entry} Entry */

/** The contestant every other is measured against. */
export const BARE = 'bare Map, fixed window'

/**
 * All contestants, in the order of the tables.
 * Each runs in its own process, which loads no other contestant's module, so they share no compiled code, no inline
 * caches and no garbage.
 *
 * @type {readonly Entry[]}
 */
export const CONTESTANTS = [
  {
    name: 'headgate, sliding-window counter',
    role: 'headgate',
    shape: 'promise',
    create: async rule => (await import('./headgate.js')).createHeadgateCounter(rule),
  },
  {
    name: 'headgate, token bucket',
    role: 'headgate',
    shape: 'promise',
    create: async rule => (await import('./headgate.js')).createHeadgateBucket(rule),
  },
  {
    name: 'headgate, sliding-window log',
    role: 'headgate',
    shape: 'promise',
    create: async rule => (await import('./headgate.js')).createHeadgateLog(rule),
  },
  {
    name: 'rate-limiter-flexible',
    role: 'peer',
    shape: 'promise',
    create: async rule => (await import('./rate-limiter-flexible.js')).createRateLimiterFlexible(rule),
  },
  {
    name: 'express-rate-limit',
    role: 'peer',
    shape: 'promise',
    create: async rule => (await import('./express-rate-limit.js')).createExpressRateLimit(rule),
  },
  {
    name: 'hono-rate-limiter',
    role: 'peer',
    shape: 'promise',
    create: async rule => (await import('./hono-rate-limiter.js')).createHonoRateLimiter(rule),
  },
  {
    name: 'limiter in a Map',
    role: 'peer',
    shape: 'promise',
    create: async rule => (await import('./limiter.js')).createLimiterPromise(rule),
  },
  {
    name: 'limiter in a Map (sync)',
    role: 'peer',
    shape: 'sync',
    create: async rule => (await import('./limiter.js')).createLimiterSync(rule),
  },
  {
    name: BARE,
    role: 'bare',
    shape: 'promise',
    create: async rule => (await import('./bare.js')).createBareWindow(rule),
  },
  {
    name: 'bare Map, token bucket',
    role: 'bare',
    shape: 'promise',
    create: async rule => (await import('./bare.js')).createBareBucket(rule),
  },
  {
    name: 'clock and look-up alone',
    role: 'harness',
    shape: 'promise',
    create: async () => (await import('./harness.js')).createLookUp(),
  },
  {
    name: 'nothing (the harness)',
    role: 'harness',
    shape: 'promise',
    create: async () => (await import('./harness.js')).createHarness(),
  },
]

/** @param {string} name @returns {Entry} */
export function contestantNamed(name) {
  const entry = CONTESTANTS.find(candidate => candidate.name === name)
  if (entry === undefined) throw new Error(`no contestant is named '${name}'`)
  return entry
}
