/** @typedef {import('./contestant.js').Entry} Entry */
/** @typedef {import('../clients.js').ClientKind} ClientKind */

/** @type {Entry['workloads']} */
const ALL = ['a', 'b', 'c', 'd', 'e']
/** @type {Entry['workloads']} */
const ONE_LIMIT = ['a', 'b', 'c', 'd']
/** The workloads in which a memory of denials makes a difference. @type {Entry['workloads']} */
const WITH_DENIALS = ['b', 'c']
/** The workloads in which nothing is denied. @type {Entry['workloads']} */
const ALLOWED = ['a', 'd']

/** Windows of other lengths, for the contestants that the targets compare. @type {Entry['workloads']} */
const OTHER_WINDOWS = ['a1s', 'a1h']

/** @type {readonly Omit<Entry, 'client'>[]} */
const headgate = [
  {
    name: 'headgate, sliding-window counter',
    role: 'headgate',
    algorithm: 'counter',
    localBlock: true,
    workloads: ALL,
    create: async setup => (await import('./headgate.js')).createHeadgateCounter(setup),
  },
  {
    name: 'headgate, token bucket',
    role: 'headgate',
    algorithm: 'bucket',
    localBlock: true,
    workloads: ONE_LIMIT,
    create: async setup => (await import('./headgate.js')).createHeadgateBucket(setup),
  },
  {
    name: 'headgate, tier (log, bucket, two counters)',
    role: 'headgate',
    algorithm: 'tier',
    localBlock: true,
    workloads: ['e'],
    create: async setup => (await import('./headgate.js')).createHeadgateTier(setup),
  },
  {
    name: 'headgate, sliding-window log',
    role: 'headgate',
    algorithm: 'log',
    localBlock: true,
    workloads: ['log'],
    create: async setup => (await import('./headgate.js')).createHeadgateLog(setup),
  },
]

/** @type {Record<'flexible' | 'flexibleBlocking' | 'express' | 'upstashWindow' | 'upstashBucket' | 'fastify' | 'log' | 'bottleneck', Omit<Entry, 'client'>>} */
const peers = {
  flexible: {
    name: 'rate-limiter-flexible',
    role: 'peer',
    algorithm: 'fixed',
    localBlock: false,
    workloads: ALL,
    create: async setup => (await import('./rate-limiter-flexible.js')).createRateLimiterFlexible(setup),
  },
  flexibleBlocking: {
    name: 'rate-limiter-flexible, inMemoryBlock',
    role: 'peer',
    algorithm: 'fixed',
    localBlock: true,
    workloads: WITH_DENIALS,
    create: async setup =>
      (await import('./rate-limiter-flexible.js')).createRateLimiterFlexibleBlocking(setup),
  },
  express: {
    name: 'rate-limit-redis (express-rate-limit)',
    role: 'peer',
    algorithm: 'fixed',
    localBlock: false,
    workloads: ALL,
    create: async setup => (await import('./rate-limit-redis.js')).createRateLimitRedis(setup),
  },
  upstashWindow: {
    name: '@upstash/ratelimit, sliding window',
    role: 'peer',
    algorithm: 'counter',
    localBlock: true,
    workloads: ALL,
    create: async setup => (await import('./upstash.js')).createUpstashSlidingWindow(setup),
  },
  upstashBucket: {
    name: '@upstash/ratelimit, token bucket',
    role: 'peer',
    algorithm: 'bucket',
    localBlock: true,
    workloads: ONE_LIMIT,
    create: async setup => (await import('./upstash.js')).createUpstashTokenBucket(setup),
  },
  fastify: {
    name: '@fastify/rate-limit',
    role: 'peer',
    algorithm: 'fixed',
    localBlock: false,
    workloads: ALL,
    create: async setup => (await import('./fastify-rate-limit.js')).createFastifyRateLimit(setup),
  },
  log: {
    name: 'async-ratelimiter (koa-ratelimit)',
    role: 'peer',
    algorithm: 'log',
    localBlock: false,
    workloads: ['log'],
    create: async setup => (await import('./async-ratelimiter.js')).createAsyncRateLimiter(setup),
  },
  bottleneck: {
    name: 'bottleneck',
    role: 'peer',
    algorithm: 'none',
    localBlock: false,
    workloads: ALLOWED,
    create: async setup => (await import('./bottleneck.js')).createBottleneck(setup),
  },
}

/** @type {readonly Omit<Entry, 'client'>[]} */
const raw = [
  {
    name: 'bare INCR',
    role: 'raw',
    algorithm: 'none',
    localBlock: false,
    workloads: ALLOWED,
    create: async setup => (await import('./raw.js')).createIncr(setup),
  },
  {
    name: 'empty script',
    role: 'raw',
    algorithm: 'none',
    localBlock: false,
    workloads: ALLOWED,
    create: async setup => (await import('./raw.js')).createEmptyScript(setup),
  },
]

/** The fastest client of each role. @type {Readonly<Record<Entry['role'], ClientKind>>} */
const QUICKEST = { headgate: 'node-redis', peer: 'node-redis, tuned', raw: 'node-redis, tuned' }

/** Whether an entry uses its fastest client. @param {Entry} entry */
export function isQuickest({ role, client }) {
  return client === QUICKEST[role]
}

/** @param {Omit<Entry, 'client'>} entry @param {readonly ClientKind[]} clients @returns {Entry[]} */
function over(entry, clients) {
  const withWindows = entry.workloads.includes('a') ? [...entry.workloads, ...OTHER_WINDOWS] : entry.workloads
  return clients.map(client => ({
    ...entry,
    client,
    workloads: isQuickest({ ...entry, client }) ? withWindows : entry.workloads,
  }))
}

/**
 * All contestants, in the order of the tables. `tuned` is the same peer over a client with its per-command
 * timer off; Headgate's own connection has none, so its node-redis needs no tuning.
 *
 * @type {readonly Entry[]}
 */
export const CONTESTANTS = [
  ...headgate.flatMap(entry => over(entry, ['node-redis', 'ioredis'])),
  ...over(peers.flexible, ['ioredis', 'node-redis', 'node-redis, tuned']),
  ...over(peers.flexibleBlocking, ['ioredis', 'node-redis', 'node-redis, tuned']),
  ...over(peers.express, ['ioredis', 'node-redis', 'node-redis, tuned']),
  ...over(peers.upstashWindow, ['ioredis', 'node-redis, tuned']),
  ...over(peers.upstashBucket, ['ioredis', 'node-redis, tuned']),
  ...over(peers.fastify, ['ioredis']),
  ...over(peers.log, ['ioredis', 'node-redis, tuned']),
  ...over(peers.bottleneck, ['ioredis']),
  ...raw.flatMap(entry => over(entry, ['ioredis', 'node-redis, tuned'])),
]

/** @param {Entry} entry */
export function idOf(entry) {
  return `${entry.name} · ${entry.client}`
}

/** @param {string} id @returns {Entry} */
export function contestantWithId(id) {
  const entry = CONTESTANTS.find(candidate => idOf(candidate) === id)
  if (entry === undefined) throw new Error(`no contestant has the id '${id}'`)
  return entry
}
