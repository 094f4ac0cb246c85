/**
 * Whatever answers in place of Redis, in whatever words: every reply is rejected where it is read, the failure mode
 * decides, nothing hangs, and no limit, ban or switch is lost.
 */

import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { defineConfig } from '../../src/config.ts'
import { concurrency, createLimiter, slidingWindowLog, tokenBucket } from '../../src/index.ts'
import { type RedisConnection, redisStore } from '../../src/redis.ts'
import { fleetRecords } from '../../src/store/redis/fleet-records.ts'
import { scripts } from '../../src/store/redis/scripts.gen.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { waitUntil } from '../support/wait-until.ts'

const SILENT = { info() {}, warn() {}, error() {} }
const LIMIT = 10
const policies = {
  log: slidingWindowLog({ limit: LIMIT, window: '1h' }),
  bucket: tokenBucket({ capacity: LIMIT, refillPerSecond: 0.001 }),
  both: [
    slidingWindowLog({ limit: LIMIT, window: '1h' }),
    tokenBucket({ capacity: LIMIT, refillPerSecond: 0.001 }),
  ],
  places: concurrency({ limit: LIMIT }),
}

const HUGE = 10 ** 12
const NOW_US = 1_700_000_000_000_000
/** Replies that no script gives: of the wrong type, size or meaning. */
const GARBAGE: readonly unknown[] = [
  ...[null, undefined, '', 'OK', 'QUEUED', '<html>', true, {}, { 0: 1, length: 1 }, 10n],
  ...[-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 60, 1e300],
  ...[[], [null], ['QUEUED'], [[]], [[[[]]]], [{}], [Number.NaN], [''], [-1, -1], 'x'.repeat(1_000_000)],
  ...[
    [HUGE, NOW_US, '', HUGE, HUGE],
    [Number.NaN, NOW_US, '', 1, 1],
    ['1e3', NOW_US, '', 1, 1],
  ],
  ...[
    [1, 'soon', '', 1, 1],
    [1, NOW_US, 'then', 1, 1],
    [1, NOW_US, '', 0, 1],
    [0, NOW_US, '', 0, 0],
  ],
  ...[
    [NOW_US, Number.NaN],
    [NOW_US, HUGE],
    [NOW_US, -HUGE],
    [NOW_US, [0, HUGE, 0, NOW_US]],
    [NOW_US, [0, 1]],
  ],
  ...[
    [Number.NaN, NOW_US],
    [HUGE, NOW_US],
    [-1, NOW_US],
    [[0, -5, 0, 0], NOW_US],
    [[1, HUGE, 0], NOW_US],
    [[2, 0, 0, 0], NOW_US],
    [[0, 'x', 'y', 'z'], NOW_US],
    [[1], NOW_US],
    [[0], NOW_US],
    [NOW_US, [-2, 0, 0, -1]],
    [NOW_US, [0, Number.NaN, 0, 0]],
    [NOW_US, 2 ** 60],
    [NOW_US, ['ERR']],
    Array(100_000).fill(1),
  ],
]

let server: RedisProcess
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

type ScriptName = keyof typeof scripts
const NAMES = new Map(Object.entries(scripts).map(([name, { sha }]) => [sha as string, name as ScriptName]))

/** A real Redis, of which the replies to some scripts can be replaced, and which can be cut off. */
function tampered() {
  const client = new Redis({ port: server.port })
  client.on('error', () => {})
  closing.push(() => client.disconnect())
  const control = {
    replace: (_name: ScriptName, reply: unknown): unknown => reply,
    isAway: false,
  }
  async function send(sha: string, ask: () => Promise<unknown>): Promise<unknown> {
    if (control.isAway) throw new Error('Connection is closed.')
    const answered = await ask()
    // Those that are made at run time decide, too.
    return control.replace(NAMES.get(sha) ?? 'decide', answered)
  }
  const connection: RedisConnection = {
    evalsha: (sha, keys, args) => send(sha, () => client.evalsha(sha, keys.length, ...keys, ...args)),
    eval(text, keys, args) {
      const [sha = ''] = [...NAMES.keys()].filter(sha => scripts[NAMES.get(sha) as ScriptName].text === text)
      return send(sha, () => client.eval(text, keys.length, ...keys, ...args))
    },
  }
  return { connection, control }
}

let tenants = 0
function storeOn(connection: RedisConnection) {
  const store = redisStore(connection, {
    ...{ deadlineMs: 2_000, logger: SILENT, onWarning: () => {}, prefix: `m${++tenants}` },
  })
  closing.unshift(() => store.close())
  return store
}

async function admittedOf(times: number, ask: () => Promise<{ readonly allowed: boolean }>): Promise<number> {
  let admitted = 0
  for (let time = 0; time < times; time++) if ((await ask()).allowed) admitted++
  return admitted
}

const shown = (reply: unknown) => String(JSON.stringify(reply) ?? typeof reply).slice(0, 40)
const REPLIES = GARBAGE.map(reply => [typeof reply === 'bigint' ? '10n' : shown(reply), reply] as const)

describe('a malformed reply', () => {
  it.each(REPLIES)('to a heartbeat leaves the share of each process as it was: %s', async (_, garbage) => {
    const { connection, control } = tampered()
    let beats = 0
    control.replace = (name, reply) => {
      if (name !== 'heartbeat') return reply
      beats++
      return garbage
    }
    const store = storeOn(connection)
    const limiter = createLimiter({ store, policies })
    await waitUntil('a heartbeat was answered', () => beats > 0)
    control.isAway = true
    for (const policy of ['log', 'bucket', 'both'] as const) {
      expect(await admittedOf(60, () => limiter.check('user:1', { policy })), policy).toBe(LIMIT)
    }
    expect(store.health().sharedAmong).toBe(1)
  })

  it.each(REPLIES)('to a check is decided by the failure mode: %s', async (_, garbage) => {
    const { connection, control } = tampered()
    const CHECKS = /decide|one|log|bucket|counter|peek/
    control.replace = (name, reply) => (CHECKS.test(name) ? garbage : reply)
    const limiter = createLimiter({ store: storeOn(connection), policies })
    for (const policy of ['log', 'bucket', 'both', 'places'] as const) {
      const decisions = []
      for (let time = 0; time < 3 * LIMIT; time++) decisions.push(await limiter.check('user:1', { policy }))
      expect(decisions.filter(({ allowed }) => allowed).length, policy).toBe(LIMIT)
      expect(new Set(decisions.map(({ source }) => source)), policy).toEqual(new Set(['local']))
    }
    const [peeked, closed] = [
      await limiter.peek('user:1', { policy: 'log' }),
      await limiter.check('user:1', { policy: 'log', onStoreFailure: 'closed' }),
    ]
    expect([peeked.source, closed.source, closed.allowed]).toEqual(['local', 'closed', false])
  })

  it.each(REPLIES)('to what comes after a check gives nothing back: %s', async (_, garbage) => {
    const { connection, control } = tampered()
    const limiter = createLimiter({ store: storeOn(connection), policies })
    const decision = await limiter.check('user:1', { policy: 'bucket', cost: 5 })
    const held = await limiter.check('user:1', { policy: 'places' })
    expect([decision.source, held.source]).toEqual(['redis', 'redis'])
    control.replace = (name, reply) => (/refund|renew|reset/.test(name) ? garbage : reply)
    expect(await limiter.refund(decision, 2)).toBe(0)
    await limiter.settle(decision, 1)
    await held.release()
    await expect(limiter.reset('user:2', { policy: 'log' })).rejects.toMatchObject({
      code: expect.stringMatching(/^ERR_HEADGATE_STORE/),
    })
  })

  it('to operators is rejected, and bans and switches stay as they were', async () => {
    const { connection, control } = tampered()
    const store = storeOn(connection)
    const config = defineConfig({ policies: { log: policies.log }, default: { policy: 'log' } })
    const ruled = createLimiter({ config, store, logger: SILENT })
    closing.unshift(() => ruled.close())
    await ruled.ready()
    await ruled.control.set({ multiplier: 0.5 })
    const ban = { limits: { 'log-1h': 0 }, ttl: '1h', reason: 'abuse', by: 'test' } as const
    await ruled.overrides.set({ subject: 'user:bad', ...ban })
    let answered: unknown
    let looks = 0
    control.replace = (name, reply) => {
      if (!/control|overrides|statistics/.test(name)) return reply
      looks++
      return answered
    }
    const rejected = expect.objectContaining({ code: 'ERR_HEADGATE_STORE_REPLY' })
    for (const [name, garbage] of REPLIES) {
      answered = garbage
      await expect(fleetRecords(store).statistics.read(), name).rejects.toEqual(rejected)
      // A list of nothing says that no switch is set.
      if (name === '[]') continue
      await expect(store.control.read(), name).rejects.toEqual(rejected)
      await expect(store.control.removeOverride('user:nobody'), name).rejects.toEqual(rejected)
      expect(await admittedOf(3, () => ruled.check('user:bad', { policy: 'log' })), name).toBe(0)
    }
    const before = looks
    await waitUntil('the limiter has read them again', () => looks > before + 3)
    expect(ruled.control.get().multiplier).toBe(0.5)
    expect(await admittedOf(LIMIT, () => ruled.check('user:1', { policy: 'log' }))).toBe(LIMIT / 2)
    expect(await admittedOf(3, () => ruled.check('user:bad', { policy: 'log' }))).toBe(0)
  })

  it('of counts that others have left is skipped', async () => {
    const { connection, control } = tampered()
    const store = storeOn(connection)
    const left = {
      ...{ id: 'a', service: '', version: '1', configVersion: null, startedAtMs: 1, sequence: 1, note: null },
      ...{ durationMs: 1_000, decisions: [], shadowDenied: 0, breakers: [], deniedCallers: [] },
      ...{ unlistedAtMost: 0, sampledOneIn: 1 },
      store: { calls: 1, checks: 1, failedCalls: 0, latency: { counts: [], sumUs: 0 }, failures: {} },
    }
    const spoilt = Object.keys(left)
      .filter(key => !['note', 'version', 'configVersion', 'unlistedAtMost', 'sampledOneIn'].includes(key))
      .flatMap(key => [null, 'x', -1, [null], {}].map(value => ({ ...left, [key]: value })))
      .filter(({ id, service }) => id !== 'x' && service !== 'x')
    const texts = [...spoilt.map(one => JSON.stringify(one)), 'x', '[]', 'null', '1', '{"sequence":1}']
    const reports = [JSON.stringify(left), ...texts].flatMap((text, index) => [`p${index}`, text])
    const denial = { atMs: 1, subject: 'user:1', policy: 'api', count: 1 }
    const denials = [denial, {}, { ...denial, atMs: 'x' }, { subject: 'user:2' }, null]
    const entries: unknown[] = denials.map((one, index) => [`7-${index}`, ['denial', JSON.stringify(one)]])
    control.replace = (name, reply) => (name === 'statistics' ? [String(NOW_US), reports, entries] : reply)
    const found = await fleetRecords(store).statistics.read('')
    expect(found).toMatchObject({ nowMs: NOW_US / 1000, processes: [left], denials: [denial], cursor: '7-4' })
    expect([found.processes.length, found.denials.length]).toEqual([1, 1])
    for (const entry of ['x', null, [], ['7-0'], ['x', []], ['7-0', 'x'], ['7-0', [[]]], [7, ['a', 'b']]]) {
      entries.splice(0, entries.length, entry)
      await expect(fleetRecords(store).statistics.read('')).rejects.toMatchObject({
        code: 'ERR_HEADGATE_STORE_REPLY',
      })
    }
  })
})
