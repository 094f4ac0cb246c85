// Keeps the version that is built as "the previous one", for the tests that hold the next version to it:
//   fixtures/previous/redis.mjs.gz   its Redis store and algorithms, to be run beside the next version's
//   fixtures/previous/stored.json    every layout it keeps in Redis, and what it answered when asked about it
// Run when a version has been released: node packages/headgate/test/upgrade/record.mjs
import { writeFile } from 'node:fs/promises'
import { register } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { Redis } from 'ioredis'
import { slidingWindowCounter, slidingWindowLog, tokenBucket } from '../../dist/index.js'
import { redisStore } from '../../dist/redis.js'
import { askStore } from '../../dist/store/ask-store.js'

register('../faults/ts-loader.mjs', import.meta.url)
const { startRedis } = await import('../support/redis-process.ts')
const { waitUntil } = await import('../support/wait-until.ts')

const FIXTURES = new URL('../fixtures/previous/', import.meta.url)
const MINUTE_US = 60_000_000
const TEST_SHIFT_MS = 4_398_046_511_104

/** Charges one after the other, with pauses in milliseconds between them. */
const STATES = [
  {
    name: 'log',
    subject: 'user:42',
    limit: slidingWindowLog({ limit: 10, window: '1m' }),
    history: [1, 3, 2],
    offsetsUs: [0, 1_000_000, MINUTE_US - 1_000_000, MINUTE_US, 2 * MINUTE_US],
  },
  {
    name: 'log whose first entry has left the window and counts as the base',
    subject: 'ip:203.0.113.7',
    limit: slidingWindowLog({ limit: 10, window: '300ms' }),
    history: [2, { pauseMs: 200 }, 1, { pauseMs: 150 }, 3],
    offsetsUs: [0, 200_000, 300_000, 700_000],
  },
  {
    name: 'log of which a charge was taken back after another had left',
    subject: 'ip:192.0.2.7',
    limit: slidingWindowLog({ limit: 10, window: '300ms', name: 'given-back' }),
    history: [2, { pauseMs: 200 }, 3, { pauseMs: 150 }, 4, { refundOf: 1 }],
    offsetsUs: [0, 200_000, 300_000, 700_000],
  },
  {
    name: 'counter',
    subject: 'user:42',
    limit: slidingWindowCounter({ limit: 10, window: '1m' }),
    history: [1, 3, 2],
    offsetsUs: [0, MINUTE_US, MINUTE_US + 45_000_000, 2 * MINUTE_US],
  },
  {
    name: 'counter in its second window',
    subject: 'session:~5f2b8c1e9d3a47608b1f0c2d4e6a7b89',
    limit: slidingWindowCounter({ limit: 10, window: '1s' }),
    history: [{ toNextMs: 1_000 }, 8, { toNextMs: 1_000 }, 2],
    offsetsUs: [0, 400_000, 1_000_000, 1_500_000, 2_000_000],
  },
  {
    name: 'counter with more units than its number can say',
    subject: 'user:43',
    limit: slidingWindowCounter({ limit: 100_000_000, window: '1m', name: 'large' }),
    history: [50_000_000, 3],
    offsetsUs: [0, MINUTE_US, 2 * MINUTE_US],
  },
  {
    name: 'counter in buckets',
    subject: 'user:42',
    scope: '/orders/:id',
    limit: slidingWindowCounter({ limit: 10, window: '2s', buckets: 4 }),
    history: [{ toNextMs: 500 }, 4, { pauseMs: 500 }, 1, { pauseMs: 500 }, 3],
    offsetsUs: [0, 500_000, 1_000_000, 1_500_000, 2_600_000],
  },
  {
    name: 'bucket with a fraction of a token',
    subject: 'apikey:~0c9a1b2d3e4f5061728394a5b6c7d8e9',
    limit: tokenBucket({ capacity: 10, refillPerSecond: 2 }),
    history: [3, { pauseMs: 120 }, 2],
    offsetsUs: [0, 250_000, 1_000_000, 5_000_000],
  },
  {
    name: 'bucket of a tenant',
    tenant: 'acme',
    subject: 'global:~all',
    limit: tokenBucket({ capacity: 100, refillPerSecond: 0.5, name: 'everyone' }),
    history: [100],
    offsetsUs: [0, 2_000_000, 100_000_000],
  },
]

const server = await startRedis()
const redis = new Redis(server.port)
let testClockUs = null

async function timeUs() {
  const [seconds, micros] = await redis.time()
  return Number(seconds) * 1_000_000 + Number(micros)
}

function storeOf(tenant, options = {}) {
  const settings = { denyCache: false, processes: 1, onStoreFailure: 'throw', deadlineMs: 5_000 }
  return redisStore(new Redis(server.port, { lazyConnect: true }), { ...settings, tenant, ...options })
}

async function act(store, check, step, charges) {
  if (typeof step === 'number') {
    const { verdicts } = await askStore(store, { alternatives: [[{ ...check, cost: step }]], shadow: [] })
    charges.push({ units: step, chargedAtUs: verdicts[0][0].chargedAtUs })
  } else if (step.refundOf !== undefined) {
    const [charge] = charges.splice(step.refundOf, 1)
    await store.refund([{ check, ...charge }])
  } else if (step.toNextMs !== undefined) {
    await sleep(step.toNextMs - (((await timeUs()) / 1000) % step.toNextMs) + 5)
  } else await sleep(step.pauseMs)
}

/** Returns a key as Redis holds it. */
async function held(key) {
  const type = await redis.type(key)
  const read = {
    hash: () => redis.hgetall(key),
    zset: () => redis.zrange(key, 0, -1, 'WITHSCORES'),
    string: () => redis.get(key),
  }
  const expiresAtMs = await redis.pexpiretime(key)
  return { key, type, value: await read[type](), ttlMs: await redis.pttl(key), expiresAtMs }
}

async function newKey(known) {
  const keys = (await redis.keys('*:v2:*')).filter(key => !known.has(key))
  if (keys.length !== 1) throw new Error(`expected one new key; got ${keys.join(' ')}`)
  known.add(keys[0])
  return keys[0]
}

async function recordState(
  { name, tenant = '', subject, scope = 'global', limit, history, offsetsUs },
  known,
) {
  const check = { subject, scope, name: `api.${limit.id}`, limit, cost: 1 }
  const store = storeOf(tenant)
  await store.ready()
  const charges = []
  for (const step of history) await act(store, check, step, charges)
  const stored = await held(await newKey(known))
  const nowUs = await timeUs()
  await store.close()
  const later = storeOf(tenant, { testClockUs: () => testClockUs })
  await later.ready()
  // A state that tells time by its expiry is one of a test's clock from here on; see lua/include/test_clock.lua.
  if (stored.type === 'string') await redis.pexpireat(stored.key, stored.expiresAtMs + TEST_SHIFT_MS)
  const answers = []
  for (const afterUs of offsetsUs) {
    testClockUs = nowUs + afterUs
    for (const cost of [1, limit.limit]) {
      const answer = await askStore(later, { alternatives: [[{ ...check, cost }]], shadow: [] }, true)
      const { remaining, retryAfterUs, resetAfterUs } = answer.verdicts[0][0]
      answers.push({ afterUs, cost, remaining, retryAfterUs, resetAfterUs })
    }
  }
  await later.close()
  return { name, tenant, check, stored, nowUs, charges, answers }
}

async function recordOperators() {
  const store = storeOf('')
  await store.control.setControl({ enabled: 'true', multiplier: '1.5' })
  await store.control.putOverride('subject user:42', '{"limits":{"log-1m":{"limit":50}}}', 3_600_000)
  await store.control.putOverride('rule login', '{"multiplier":0.5}', 60_000)
  const stored = [await held('rate-limit:control'), await held('ratelimit:overrides')]
  const nowUs = await timeUs()
  testClockUs = nowUs
  const later = storeOf('', { testClockUs: () => testClockUs })
  const { control, overrides } = await later.control.read()
  const reading = {
    control,
    overrides: [...overrides.entries].map(([target, entry]) => ({
      target,
      ...entry,
      expiresInMs: entry.expiresAtMs - overrides.nowMs,
    })),
  }
  await Promise.all([store.close(), later.close()])
  return { stored, nowUs, reading }
}

async function recordFleet() {
  await redis.del('ratelimit:fleet')
  const stores = [1, 2].map(() => storeOf('', { processes: undefined, onStoreFailure: 'local' }))
  await waitUntil(
    'both have said that they are there',
    async () => (await redis.zcard('ratelimit:fleet')) === 2,
  )
  const stored = await held('ratelimit:fleet')
  const nowUs = await timeUs()
  await Promise.all(stores.map(store => store.close()))
  return { stored, nowUs, live: 2 }
}

try {
  const known = new Set()
  const states = []
  for (const state of STATES) states.push(await recordState(state, known))
  const fixture = { states, operators: await recordOperators(), fleet: await recordFleet() }
  await writeFile(new URL('stored.json', FIXTURES), `${JSON.stringify(fixture, null, 2)}\n`)
  const { outputFiles } = await build({
    stdin: {
      contents: `export { redisStore } from './redis.js'
        export { askStore } from './store/ask-store.js'
        export { allAlgorithms } from './algorithms/all-algorithms.js'`,
      resolveDir: fileURLToPath(new URL('../../dist/', import.meta.url)),
    },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'node',
  })
  await writeFile(new URL('redis.mjs.gz', FIXTURES), gzipSync(outputFiles[0].contents, { level: 9 }))
} finally {
  redis.disconnect()
  await server.stop()
}
