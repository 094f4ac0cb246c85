/** The figures that the processes of a fleet leave in Redis, as another of them reads them. */

import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { defineConfig } from '../../src/config.js'
import { createLimiter, slidingWindowLog } from '../../src/index.js'
import { createStatistics } from '../../src/metrics.js'
import { redisStore } from '../../src/redis.js'
import { fleetRecords } from '../../src/store/redis/fleet-records.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'

const policies = { api: slidingWindowLog({ limit: 10, window: '1m' }) }
const logger = { info() {}, warn() {}, error() {} }
let redis: RedisProcess

beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

/** Timers of which only the second of the statistics elapses, on command. */
function seconds() {
  let work = (): void => {}
  const keep = (_: number, next: () => void) => {
    work = next
    return () => {}
  }
  return { timers: { after: keep, inBackground: keep }, tick: () => work() }
}

function process(service: string, prefix = 'ratelimit') {
  const { timers, tick } = seconds()
  const statistics = createStatistics({ timers })
  const client = createClient({ url: `redis://127.0.0.1:${redis.port}` })
  // However busy the machine is, Redis decides.
  const store = redisStore(client, { statistics, logger, service, prefix, deadlineMs: 5_000 })
  const limiter = createLimiter({ store, policies })
  return { store, limiter, tick, statistics }
}

describe('a fleet', () => {
  it('a fleet sees the sum of its processes, by service, and some of their denials', async () => {
    const [one, other] = [process('shop'), process('mail')]
    await one.store.ready()
    await other.store.ready()
    for (let index = 0; index < 12; index++) await one.limiter.check('user:1', { policy: 'api' })
    for (let index = 0; index < 3; index++) await other.limiter.check('user:2', { policy: 'api' })
    one.tick()
    other.tick()
    const reading = await vi.waitFor(async () => {
      const read = await fleetRecords(one.store).statistics.read('')
      expect(read.processes).toHaveLength(2)
      return read
    }, 20_000)
    const counted = reading.processes.map(({ service, decisions, version, sequence }) => ({
      service,
      version,
      sequence,
      decisions: decisions.map(({ policy, source, allowed, denied }) => ({
        policy,
        source,
        allowed,
        denied,
      })),
    }))
    expect(counted.toSorted((left, right) => left.service.localeCompare(right.service))).toEqual([
      {
        service: 'mail',
        version: '0.1.0',
        sequence: 1,
        decisions: [{ policy: 'api', source: 'redis', allowed: 3, denied: 0 }],
      },
      {
        service: 'shop',
        version: '0.1.0',
        sequence: 1,
        decisions: [{ policy: 'api', source: 'redis', allowed: 10, denied: 2 }],
      },
    ])
    const denial = { subject: 'user:1', policy: 'api', reason: 'limit-exceeded' }
    expect(reading.denials).toMatchObject([denial, denial])
    const later = await fleetRecords(one.store).statistics.read(reading.cursor)
    expect(later).toMatchObject({ denials: [], cursor: reading.cursor })
    const shop = reading.processes.find(({ service }) => service === 'shop')
    expect(shop?.deniedCallers).toEqual([
      { subject: 'user:1', denied: 2, error: 0, policy: 'api', tier: null },
    ])
    expect(shop?.store).toMatchObject({ failedCalls: 0, denyCache: 1 })
    expect(shop?.store.calls).toBeGreaterThan(0)
    expect(await fleetRecords(one.store).statistics.serverInfo()).toContain('used_memory:')
    await one.limiter.close()
    await other.limiter.close()
  })

  it('a fleet leaves keys that expire, under its prefix, in one slot', async () => {
    const { store, limiter, tick } = process('shop', 'mine')
    await store.ready()
    for (let index = 0; index < 11; index++) await limiter.check('user:1', { policy: 'api' })
    tick()
    const keys = ['processes', 'reports', 'denials'].map(name => `mine:{stats}:${name}`)
    await vi.waitFor(async () => {
      const ttls = await Promise.all(keys.map(key => sendCommand(redis.port, 'PTTL', key)))
      expect(ttls.map(Number).every(ttl => ttl > 0 && ttl <= 86_400_000)).toBe(true)
      expect(Number(ttls[0])).toBeLessThanOrEqual(5_000)
    }, 20_000)
    await limiter.close()
  })

  it('a fleet forgets a process that has left nothing for five seconds', async () => {
    let nowUs = 1_000_000_000
    const { timers, tick } = seconds()
    const statistics = createStatistics({ timers })
    const client = createClient({ url: `redis://127.0.0.1:${redis.port}` })
    const store = redisStore(client, {
      statistics,
      logger,
      prefix: 'clock',
      testClockUs: () => nowUs,
      deadlineMs: 5_000,
    })
    const limiter = createLimiter({ store, policies })
    await store.ready()
    tick()
    await vi.waitFor(
      async () => expect((await fleetRecords(store).statistics.read()).processes).toHaveLength(1),
      20_000,
    )
    nowUs += 5_000_001
    expect((await fleetRecords(store).statistics.read()).processes).toEqual([])
    await limiter.close()
  })

  it('a fleet keeps ten thousand denials of a day, and a reader gets each of them once', async () => {
    const { store, limiter, tick } = process('shop', 'many')
    await store.ready()
    const key = 'many:{stats}:denials'
    const text = (count: number) => JSON.stringify({ atMs: 1, subject: 'user:0', policy: 'api', count })
    const client = createClient({ url: `redis://127.0.0.1:${redis.port}` })
    await client.connect()
    const yesterday = Date.now() - 90_000_000
    const ids = Array.from({ length: 10_050 }, (_, index) => `${yesterday + index * 8_000}-0`)
    await Promise.all(ids.map((id, index) => client.xAdd(key, id, { denial: text(index) })))
    for (let index = 0; index < 13; index++) await limiter.check('user:1', { policy: 'api' })
    tick()
    await vi.waitFor(async () => expect(Number(await client.xLen(key))).toBeLessThanOrEqual(10_000), 20_000)
    const oldest = await client.xRange(key, '-', '+', { COUNT: 1 })
    expect(Number(oldest?.[0]?.id.split('-')[0])).toBeGreaterThanOrEqual(Date.now() - 86_401_000)
    const counts: number[] = []
    for (let cursor = ''; ; ) {
      const read = await fleetRecords(store).statistics.read(cursor)
      if (read.denials.length === 0) break
      expect(read.denials.length).toBeLessThanOrEqual(2_000)
      counts.push(...read.denials.filter(({ subject }) => subject === 'user:0').map(({ count }) => count))
      cursor = read.cursor
    }
    expect(counts.length).toBeGreaterThan(9_000)
    expect(counts).toEqual(Array.from(counts, (_, index) => (counts[0] as number) + index))
    await client.close()
    await limiter.close()
  })
})

it('a fleet sees what limits in shadow would have done in each process', async () => {
  const { timers, tick } = seconds()
  const client = createClient({ url: `redis://127.0.0.1:${redis.port}` })
  const statistics = createStatistics({ timers })
  const store = redisStore(client, { statistics, logger, prefix: 'shadow', deadlineMs: 5_000 })
  const limits = { algorithm: 'sliding-window-log', limit: 2, window: '1m' } as const
  const config = defineConfig({
    prefix: 'shadow',
    policies: { watched: { limits, mode: 'shadow' } },
    default: { policy: 'watched' },
  })
  const limiter = createLimiter({ store, config })
  await store.ready()
  for (let index = 0; index < 5; index++) await limiter.request({ subject: 'user:1', path: '/' })
  tick()
  await vi.waitFor(async () => {
    const [one] = (await fleetRecords(store).statistics.read()).processes
    expect(one?.shadow).toEqual({ watched: { wouldAllow: 2, wouldDeny: 3 } })
    expect(one?.candidates).toEqual({})
  }, 20_000)
  await limiter.close()
})

describe('a ring of points', () => {
  it('a ring keeps as many points as it is long, and of each time the one that covers most of it', async () => {
    const { store, limiter } = process('shop', 'ring')
    await store.ready()
    const ring = { name: '6h', stepMs: 30_000, size: 4 }
    const { statistics: fleetStatistics } = fleetRecords(store)
    for (let step = 1; step <= 6; step++)
      await fleetStatistics.keepPoint(ring, { startMs: step * 30_000, seconds: 20, text: `[${step}]` })
    await fleetStatistics.keepPoint(ring, { startMs: 180_000, seconds: 10, text: '["fewer"]' })
    await fleetStatistics.keepPoint(ring, { startMs: 150_000, seconds: 30, text: '["more"]' })
    await fleetStatistics.keepPoint(ring, { startMs: 60_000, seconds: 30, text: '["late"]' })
    expect(await fleetStatistics.readRing(ring)).toEqual([
      { startMs: 90_000, seconds: 20, text: '[3]' },
      { startMs: 120_000, seconds: 20, text: '[4]' },
      { startMs: 150_000, seconds: 30, text: '["more"]' },
      { startMs: 180_000, seconds: 20, text: '[6]' },
    ])
    await sendCommand(redis.port, 'HSET', 'ring:{stats}:history:6h', '1', 'by hand')
    expect(await fleetStatistics.readRing(ring)).toHaveLength(3)
    const ttlMs = Number(await sendCommand(redis.port, 'PTTL', 'ring:{stats}:history:6h'))
    expect(ttlMs > 0 && ttlMs <= 120_000).toBe(true)
    await limiter.close()
  })
})

describe('who changed what', () => {
  it('the trail of changes is the same for every process, is bounded, and outlives them', async () => {
    const [one, other] = [process('shop', 'trail'), process('mail', 'trail')]
    await fleetRecords(one.store).changes.add({ by: 'ada', what: 'reset user:42' })
    await one.limiter.close()
    await fleetRecords(other.store).changes.add({ by: null, what: 'set control' })
    expect(await fleetRecords(other.store).changes.read()).toEqual([
      { atMs: expect.any(Number), by: null, what: 'set control' },
      { atMs: expect.any(Number), by: 'ada', what: 'reset user:42' },
    ])
    await sendCommand(redis.port, 'LPUSH', 'trail:changes', 'written by hand')
    for (let index = 0; index < 510; index++)
      await fleetRecords(other.store).changes.add({ by: 'ada', what: `change ${index}` })
    const changes = await fleetRecords(other.store).changes.read()
    expect(changes).toHaveLength(500)
    expect(changes[0]?.what).toBe('change 509')
    const ttlMs = Number(await sendCommand(redis.port, 'PTTL', 'trail:changes'))
    expect(ttlMs).toBeGreaterThan(89 * 86_400_000)
    await other.limiter.close()
  })
})

it('nobody who reads the figures of a fleet waits for a Redis that hangs', async () => {
  const { store, limiter } = process('shop', 'hangs')
  await store.ready()
  redis.kill('SIGSTOP')
  const asked = [
    fleetRecords(store).statistics.read(),
    fleetRecords(store).statistics.read(),
    fleetRecords(store).changes.read(),
  ]
  const answers = await Promise.allSettled(asked)
  redis.kill('SIGCONT')
  expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect((await fleetRecords(store).statistics.read()).processes).toEqual([])
  await limiter.close()
})

it('the failure mode decides beyond maxCallsPerSecond, and no breaker opens', async () => {
  const statistics = createStatistics()
  const client = createClient({ url: `redis://127.0.0.1:${redis.port}` })
  let nowUs = 5_000_000
  const store = redisStore(client, {
    statistics,
    logger,
    prefix: 'capped',
    maxCallsPerSecond: 3,
    batch: false,
    denyCache: false,
    onStoreFailure: 'closed',
    testClockUs: () => nowUs,
  })
  const limiter = createLimiter({ store, policies })
  await store.ready()
  const sources: string[] = []
  for (let index = 0; index < 20; index++)
    sources.push((await limiter.check(`user:${index}`, { policy: 'api' })).source)
  nowUs += 1_000_000
  const { failures, breakers, callCapPerSecond } = statistics.read().store
  expect(callCapPerSecond).toBe(3)
  expect(sources.filter(source => source === 'redis').length).toBeGreaterThanOrEqual(3)
  expect(sources).toContain('closed')
  expect(failures.capped).toBe(sources.filter(source => source === 'closed').length)
  expect(breakers).toEqual([])
  expect(() => redisStore(client, { maxCallsPerSecond: 0 })).toThrow(
    'maxCallsPerSecond: expected a whole number',
  )
  await limiter.close()
})
