/** Envoy's rate limit service over gRPC and JSON, asked by clients made from Envoy's own protos. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, memoryStore, type RuleLimiter } from 'headgate'
import { defineConfig } from 'headgate/config'
import { createStatistics } from 'headgate/metrics'
import { redisStore } from 'headgate/redis'
import { faultyStore, guardedStore, manualClock } from 'headgate/testing'
import { createClient } from 'redis'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { startRedis } from '../../headgate/test/support/redis-process.ts'
import { sendCommand } from '../../headgate/test/support/resp.ts'
import { waitUntil } from '../../headgate/test/support/wait-until.ts'
import { type EnvoyOptions, startEnvoy } from '../src/envoy/start-envoy.js'
import { envoyClient } from './support/envoy-client.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-envoy-'))
const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const YAML = `
domain: edge
descriptors:
  - key: remote_address
    rate_limit: { name: per-ip, unit: minute, requests_per_unit: 2 }
  - key: remote_address
    value: 10.0.0.9
    rate_limit: { unlimited: true }
  - key: banned
    rate_limit: { unit: second, requests_per_unit: 0 }
  - key: path
    value: /files/*
    share_threshold: true
    rate_limit: { unit: hour, requests_per_unit: 2 }
  - key: path
    value: /login
    descriptors:
      - key: user
        metadata: { team: identity }
        rate_limit: { unit: day, requests_per_unit: 1 }
  - key: tried
    shadow_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: pool
    value: a
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 1 }
  - key: pool
    value: b
    quota_mode: true
    rate_limit: { unit: minute, requests_per_unit: 2 }
  - key: bucket
    rate_limit: { unit: second, requests_per_unit: 1, algorithm: token-bucket, burst: 5 }
  - key: exact
    rate_limit: { window: 5m, requests_per_unit: 3, algorithm: sliding-window-log }
  - key: api_key
    rate_limit: { unit: minute, requests_per_unit: 5 }
  - key: plan
    value: gold
    rate_limit: { name: gold, replaces: [{ name: per-ip }], unit: minute, requests_per_unit: 9 }
`
const SILENT = { info() {}, warn() {}, error() {} }
const CONFIG = defineConfig({})
let files = 0

async function serve(options: Partial<EnvoyOptions> = {}, given: RuleLimiter | null = null, yaml = YAML) {
  const clock = manualClock()
  const limiter =
    given ?? createLimiter({ config: CONFIG, store: memoryStore({ clock }), onWarning: () => {} })
  const configPath = join(folder, `${files++}.yaml`)
  writeFileSync(configPath, yaml)
  const logged: string[] = []
  const envoy = await startEnvoy(
    {
      configPath,
      host: '127.0.0.1',
      port: 0,
      tls: null,
      shadow: false,
      headers: false,
      metadata: false,
      ...options,
    },
    limiter,
    line => logged.push(line),
  )
  cleanUps.push(() => envoy.stop(500))
  const client = envoyClient(`127.0.0.1:${envoy.port}`)
  cleanUps.push(() => client.close())
  const ask = (descriptors: readonly Descriptor[], more: object = {}) =>
    client.ask({ domain: 'edge', descriptors: descriptors.map(message), ...more })
  const codes = async (...descriptors: readonly Descriptor[]) => {
    const { overall_code, statuses } = await ask(descriptors)
    return [overall_code, ...statuses.map(({ code }) => code)].join(' ')
  }
  return { ...client, envoy, clock, limiter, configPath, logged, asking: ask, codes }
}

/** `{ remote_address: '1' }`, in the order of its keys. */
type Descriptor = Readonly<Record<string, string>>
const message = (entries: Descriptor) => ({
  entries: Object.entries(entries).map(([key, value]) => ({ key, value })),
})

describe('descriptors', () => {
  it('descriptors are counted by their values, and told limit, remaining and reset', async () => {
    const { asking, clock } = await serve()
    const first = await asking([{ remote_address: '192.0.2.1' }])
    expect(first).toMatchObject({
      overall_code: 'OK',
      statuses: [
        {
          code: 'OK',
          limit_remaining: 1,
          current_limit: { name: 'per-ip', requests_per_unit: 2, unit: 'MINUTE' },
        },
      ],
      response_headers_to_add: [],
    })
    await asking([{ remote_address: '192.0.2.1' }])
    const third = await asking([{ remote_address: '192.0.2.1' }])
    expect(third).toMatchObject({
      overall_code: 'OVER_LIMIT',
      statuses: [{ code: 'OVER_LIMIT', limit_remaining: 0 }],
    })
    const { seconds, nanos } = third.statuses[0]?.duration_until_reset ?? { seconds: 0, nanos: 0 }
    const retryAfter = Number(third.response_headers_to_add.find(({ key }) => key === 'Retry-After')?.value)
    expect(retryAfter).toBe(Math.ceil(seconds + nanos / 1e9))
    expect((await asking([{ remote_address: '192.0.2.2' }])).overall_code).toBe('OK')
    clock.advanceMs(seconds * 1_000 + nanos / 1e6)
    expect((await asking([{ remote_address: '192.0.2.1' }])).overall_code).toBe('OK')
  })

  it('descriptors without a rule, at another depth or of an unknown domain pass, and say nothing of a limit', async () => {
    const { asking, ask } = await serve()
    const replies = [
      await asking([{ other: 'x' }]),
      await asking([{ remote_address: '192.0.2.1', user: '42' }]),
      await asking([{ path: '/login' }]),
      await ask({ domain: 'elsewhere', descriptors: [message({ remote_address: '192.0.2.1' })] }),
    ]
    for (const reply of replies) {
      expect(reply).toMatchObject({ overall_code: 'OK', statuses: [{ code: 'OK', current_limit: null }] })
    }
  })

  it('descriptors meet nested rules, values before patterns before bare keys, and patterns share a budget', async () => {
    const { codes } = await serve()
    expect(await codes({ path: '/login', user: '42' })).toBe('OK OK')
    expect(await codes({ path: '/login', user: '42' })).toBe('OVER_LIMIT OVER_LIMIT')
    expect(await codes({ path: '/login', user: '7' })).toBe('OK OK')
    expect(await codes({ path: '/files/a' })).toBe('OK OK')
    expect(await codes({ path: '/files/b' })).toBe('OK OK')
    expect(await codes({ path: '/files/c' })).toBe('OVER_LIMIT OVER_LIMIT')
  })

  it('descriptors may be unlimited or banned', async () => {
    const { asking, codes } = await serve()
    const free = await asking([{ remote_address: '10.0.0.9' }])
    expect(free.statuses).toMatchObject([{ code: 'OK', limit_remaining: 4_294_967_295, current_limit: null }])
    expect(await codes({ banned: 'x' })).toBe('OVER_LIMIT OVER_LIMIT')
  })

  it('descriptors of one request are charged all or none', async () => {
    const { asking, codes } = await serve()
    await codes({ path: '/login', user: '42' })
    for (let time = 0; time < 5; time++) {
      expect(await codes({ remote_address: '192.0.2.1' }, { path: '/login', user: '42' })).toBe(
        'OVER_LIMIT OK OVER_LIMIT',
      )
    }
    expect((await asking([{ remote_address: '192.0.2.1' }])).statuses[0]?.limit_remaining).toBe(1)
  })

  it('descriptors that are the same twice cost both', async () => {
    const { asking } = await serve()
    const twice = [{ remote_address: '192.0.2.1' }, { remote_address: '192.0.2.1' }]
    expect((await asking(twice)).statuses).toMatchObject([{ limit_remaining: 0 }, { limit_remaining: 0 }])
    expect((await asking([{ remote_address: '192.0.2.1' }])).overall_code).toBe('OVER_LIMIT')
  })

  it('descriptors in shadow are counted and never over', async () => {
    const { codes, asking } = await serve()
    expect(await codes({ tried: 'x' })).toBe('OK OK')
    const second = await asking([{ tried: 'x' }])
    expect(second).toMatchObject({ overall_code: 'OK', statuses: [{ code: 'OK', limit_remaining: 0 }] })
  })

  it('descriptors of quotas deny only when all of them are used up', async () => {
    const { codes } = await serve()
    const pools = [{ pool: 'a' }, { pool: 'b' }]
    expect(await codes(...pools)).toBe('OK OK OK')
    expect(await codes(...pools)).toBe('OK OVER_LIMIT OK')
    expect(await codes(...pools)).toBe('OVER_LIMIT OVER_LIMIT OVER_LIMIT')
  })

  it('descriptors may replace others by name', async () => {
    const { asking } = await serve()
    const { statuses } = await asking([{ remote_address: '192.0.2.1' }, { plan: 'gold' }])
    expect(statuses).toMatchObject([
      { current_limit: null },
      { current_limit: { name: 'gold' }, limit_remaining: 8 },
    ])
  })

  it('descriptors take buckets with a burst, and windows of their own', async () => {
    const { asking, codes, clock } = await serve()
    for (let time = 0; time < 5; time++) expect(await codes({ bucket: 'x' })).toBe('OK OK')
    expect(await codes({ bucket: 'x' })).toBe('OVER_LIMIT OVER_LIMIT')
    clock.advanceMs(1_000)
    expect(await codes({ bucket: 'x' })).toBe('OK OK')
    const { statuses } = await asking([{ exact: 'x' }])
    expect(statuses).toMatchObject([
      { current_limit: { requests_per_unit: 3, unit: 'UNKNOWN' }, duration_until_reset: { seconds: 300 } },
    ])
  })

  it('descriptors are switched off and scaled like all limits', async () => {
    const { codes, limiter, asking } = await serve()
    await limiter.control.set({ multiplier: 2 })
    expect((await asking([{ remote_address: '192.0.2.1' }])).statuses[0]?.limit_remaining).toBe(3)
    await limiter.control.set({ enabled: false })
    expect(await codes({ banned: 'x' })).toBe('OK OK')
  })
})

describe('hits', () => {
  const IP = { entries: [{ key: 'exact', value: '192.0.2.1' }] }

  it('hits of the request hold for all descriptors, 0 as 1', async () => {
    const { ask } = await serve()
    const remaining = async (hits_addend: number) =>
      (await ask({ domain: 'edge', descriptors: [IP], hits_addend })).statuses[0]?.limit_remaining
    expect([await remaining(0), await remaining(2), await remaining(1)]).toEqual([2, 0, 0])
  })

  it('hits of a descriptor go before those of the request; an explicit 0 only looks', async () => {
    const { askNewer } = await serve()
    const hits = async (value: number) =>
      await askNewer({ domain: 'edge', descriptors: [{ ...IP, hits_addend: { value } }], hits_addend: 3 })
    expect((await hits(0)).statuses).toMatchObject([{ code: 'OK', limit_remaining: 3 }])
    expect((await hits(2)).statuses).toMatchObject([{ code: 'OK', limit_remaining: 1 }])
    expect(await hits(2)).toMatchObject({ overall_code: 'OVER_LIMIT', statuses: [{ limit_remaining: 1 }] })
  })

  it('hits that are negative come back, and never more than were used', async () => {
    const { askNewer, ask } = await serve()
    await ask({ domain: 'edge', descriptors: [IP], hits_addend: 3 })
    const back = async (value: number) =>
      await askNewer({
        domain: 'edge',
        descriptors: [{ ...IP, hits_addend: { value }, is_negative_hits: true }],
      })
    expect(await back(2)).toMatchObject({
      overall_code: 'OK',
      statuses: [{ code: 'OK', limit_remaining: 2 }],
    })
    expect((await back(9)).statuses).toMatchObject([{ limit_remaining: 3 }])
  })

  it('hits above what a limit could ever give are over, without a date', async () => {
    const { ask } = await serve()
    const reply = await ask({ domain: 'edge', descriptors: [IP], hits_addend: 4_294_967_295 })
    expect(reply).toMatchObject({
      overall_code: 'OVER_LIMIT',
      response_headers_to_add: [],
      statuses: [{ code: 'OVER_LIMIT', limit_remaining: 3, duration_until_reset: null }],
    })
  })

  it('limits in the request take the place of the configured ones, in a domain that there is', async () => {
    const { ask } = await serve()
    const descriptor = { ...IP, limit: { requests_per_unit: 7, unit: 'HOUR' } }
    expect((await ask({ domain: 'edge', descriptors: [descriptor] })).statuses).toMatchObject([
      { limit_remaining: 6, current_limit: { requests_per_unit: 7, unit: 'HOUR' } },
    ])
    expect((await ask({ domain: 'elsewhere', descriptors: [descriptor] })).statuses).toMatchObject([
      { current_limit: null },
    ])
  })
})

describe('what may be switched on', () => {
  it('the shadow switch lets everything pass, and statuses say what they found', async () => {
    const { codes } = await serve({ shadow: true })
    expect(await codes({ banned: 'x' })).toBe('OK OVER_LIMIT')
  })

  it('the shadow switch denies nobody while the limits cannot be asked, and its denials count as shadow', async () => {
    const statistics = createStatistics()
    const faulty = faultyStore(memoryStore())
    const store = guardedStore(faulty, { onStoreFailure: 'closed', logger: SILENT })
    const limiter = createLimiter({ config: CONFIG, store, statistics, onWarning: () => {} })
    const { codes } = await serve({ shadow: true }, limiter)
    expect(await codes({ banned: 'x' })).toBe('OK OVER_LIMIT')
    const { shadowDenied, decisions } = statistics.read()
    expect(shadowDenied).toBe(1)
    expect(decisions.map(({ denied }) => denied)).toEqual([0])
    faulty.faults.always({ type: 'error' })
    expect(await codes({ banned: 'x' })).toMatch(/^OK /)
  })

  it('the headers switch sends RateLimit-* of the tightest limit', async () => {
    const { asking } = await serve({ headers: true })
    const { response_headers_to_add: headers } = await asking([
      { exact: 'x' },
      { remote_address: '192.0.2.1' },
    ])
    expect(headers.slice(0, 2)).toMatchObject([
      { key: 'RateLimit-Limit', value: '2' },
      { key: 'RateLimit-Remaining', value: '1' },
    ])
    expect(headers[2]).toMatchObject({ key: 'RateLimit-Reset', value: expect.stringMatching(/^\d+$/) })
  })

  it('the metadata switch sends the question, and what is noted at the limits that have room', async () => {
    const { asking } = await serve({ metadata: true })
    const { dynamic_metadata } = await asking([{ path: '/login', user: '42' }], { hits_addend: 1 })
    const text = JSON.stringify(dynamic_metadata)
    for (const part of ['edge', 'path=/login', 'user=42', 'identity']) expect(text).toContain(part)
  })
})

describe('what is rejected', () => {
  it.each<[string, object]>([
    ['rate limit domain must not be empty', { domain: '', descriptors: [message({ a: 'b' })] }],
    ['rate limit descriptor list must not be empty', { domain: 'edge', descriptors: [] }],
    ['expected entries; got one without any', { domain: 'edge', descriptors: [{ entries: [] }] }],
    ['entries: expected keys; got an empty one', { domain: 'edge', descriptors: [message({ '': 'b' })] }],
    [
      'descriptors: expected at most 256; got 10000',
      { domain: 'edge', descriptors: Array.from({ length: 10_000 }, () => message({ a: 'b' })) },
    ],
    [
      'limit.unit: expected a number from 1 to 7; got 0',
      {
        domain: 'edge',
        descriptors: [{ ...message({ a: 'b' }), limit: { requests_per_unit: 1, unit: 'UNKNOWN' } }],
      },
    ],
  ])('a question that cannot be understood is rejected: %s', async (details, request) => {
    const { ask } = await serve()
    await expect(ask(request)).rejects.toMatchObject({ code: 3, details: expect.stringContaining(details) })
  })
})

it('health is SERVING by every name it has, and NOT_FOUND by others', async () => {
  const { health } = await serve()
  for (const name of ['', 'ratelimit', 'envoy.service.ratelimit.v3.RateLimitService']) {
    expect(await health(name)).toBe('SERVING')
  }
  await expect(health('other')).rejects.toMatchObject({ code: 5 })
})

it('limits are read again when their file changes, and a broken one leaves the last good ones', async () => {
  const { configPath, codes, logged } = await serve()
  writeFileSync(configPath, YAML.replace('requests_per_unit: 0', 'requests_per_unit: 1'))
  await waitUntil('read', () => logged.some(line => line.includes('reloaded')))
  expect(await codes({ banned: 'x' })).toBe('OK OK')
  writeFileSync(configPath, 'domain: edge\ndescriptors: 7\n')
  await waitUntil('rejected', () => logged.some(line => line.includes('NOT in use')))
  expect(logged.at(-1)).toContain('descriptors: expected a list of descriptors; got 7')
  expect(await codes({ remote_address: '192.0.2.1' })).toBe('OK OK')
})

describe('on Redis', () => {
  async function onRedis(mode: 'local' | 'closed') {
    const redis = await startRedis()
    cleanUps.push(() => redis.stop())
    const logger = { info() {}, warn() {}, error() {} }
    const store = redisStore(createClient({ url: redis.url }), { onStoreFailure: mode, logger })
    const limiter = createLimiter({ config: CONFIG, store, onWarning: () => {} })
    cleanUps.push(() => limiter.close())
    return { redis, ...(await serve({}, limiter)) }
  }

  it('keys in Redis name domain and descriptor, and no secret', async () => {
    const { redis, codes } = await onRedis('local')
    await codes({ remote_address: '192.0.2.1' }, { path: '/login', user: '42' }, { api_key: 'canary' })
    const keys = ((await sendCommand(redis.port, 'KEYS', '*descriptor*')) as unknown as string[]).sort()
    expect(keys).toEqual([
      expect.stringMatching(/^ratelimit:v2:\{descriptor-secret:~[0-9a-f]{32}\}:edge:envoy\.counter-1m$/),
      'ratelimit:v2:{descriptor:path=%252Flogin|user=42}:edge:envoy.counter-1d',
      'ratelimit:v2:{descriptor:remote_address=192.0.2.1}:edge:envoy.counter-1m',
    ])
  })

  it('this process decides when Redis does not answer, and says nothing of quotas', async () => {
    const { redis, asking } = await onRedis('local')
    await asking([{ remote_address: '192.0.2.1' }])
    await redis.stop()
    const reply = await asking([{ remote_address: '192.0.2.2' }])
    expect(reply).toMatchObject({ overall_code: 'OK', statuses: [{ code: 'OK', current_limit: null }] })
  })

  it('the failure mode closed is an error, so that Envoy’s own failure mode decides', async () => {
    const { redis, asking } = await onRedis('closed')
    await asking([{ remote_address: '192.0.2.1' }])
    await redis.stop()
    await expect(asking([{ remote_address: '192.0.2.2' }])).rejects.toMatchObject({ code: 14 })
  })
})
