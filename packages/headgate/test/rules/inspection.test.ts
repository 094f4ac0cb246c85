/** Tests the questions about a request or a subject that a limiter answers without charging anything. */
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import type { Config } from '../../src/policy/config.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'
import { configOf, perMinute, ruleOf } from '../support/rule-config.ts'

const CONFIG: Partial<Config> = {
  policies: {
    api: { limits: [slidingWindowLog({ limit: 5, window: '1m' })] },
    login: { limits: [slidingWindowCounter({ limit: 2, window: '1h' })] },
    org: perMinute(100),
    spare: perMinute(7),
  },
  default: { policy: 'api' },
  rules: [
    ruleOf({
      name: 'login',
      match: { methods: ['POST'], path: '/login' },
      charge: { policy: 'login' },
      also: [{ subject: 'tenant', policy: 'org' }],
    }),
    ruleOf({ name: 'keys', match: { path: '/keys', subjects: ['apikey'] }, charge: { policy: 'spare' } }),
    ruleOf({ name: 'reports', match: { path: '/reports' }, charge: { policy: 'api' }, scope: 'reports' }),
  ],
}
const LOGIN = { method: 'POST', path: '/login' }
const cleanUps: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

function inMemory() {
  const clock = manualClock()
  return { clock, limiter: createLimiter({ config: configOf(CONFIG), clock }) }
}

async function onRedis() {
  const server = await startRedis()
  cleanUps.push(() => server.stop())
  const store = redisStore(new Redis({ port: server.port, lazyConnect: true }), {
    tenant: 'acme',
    deadlineMs: 5_000,
  })
  const limiter = createLimiter({ config: configOf(CONFIG), store, onWarning: () => {} })
  cleanUps.push(() => limiter.close())
  return { server, limiter }
}

describe('peekRequest', () => {
  it('peekRequest says what the request would be told, and changes nothing', async () => {
    const { limiter } = inMemory()
    const facts = { subject: 'user:42', ...LOGIN } as const
    expect(await limiter.peekRequest(facts)).toMatchObject({ allowed: true, rule: 'login', remaining: 2 })
    await limiter.request(facts)
    await limiter.request(facts)
    for (let time = 0; time < 3; time++) {
      expect(await limiter.peekRequest(facts)).toMatchObject({ allowed: false, remaining: 0 })
    }
  })
})

describe('inspect', () => {
  it('inspect shows every limit the file has for a subject, with what is left and in words', async () => {
    const { limiter, clock } = inMemory()
    await limiter.request({ subject: 'user:42', ...LOGIN })
    await limiter.request({ subject: 'user:42', ...LOGIN })
    await limiter.request({ subject: 'user:42', path: '/' })
    clock.advanceMs(1_000)
    const { limits, text, ...rest } = await limiter.inspect('user:42')
    expect(rest).toEqual({ subject: 'user:42', tier: null, truncated: false })
    expect(limits.map(({ rule, name, scope, used }) => [rule, name, scope, used])).toEqual([
      ['default', 'api.log-1m', 'global', 1],
      ['login', 'login.counter-1h', 'global', 2],
      ['reports', 'api.log-1m', 'reports', 0],
    ])
    const { text: words, ...numbers } = limits[0] as (typeof limits)[number]
    expect(numbers).toEqual({
      rule: 'default',
      ban: null,
      name: 'api.log-1m',
      scope: 'global',
      subject: 'user:42',
      key: null,
      algorithm: 'sliding-window-log',
      limit: 5,
      used: 1,
      remaining: 4,
      retryAfterMs: 0,
      resetAfterMs: 59_000,
    })
    expect(words).toBe(
      '  api.log-1m by default, scope global, of user:42: sliding-window-log 5 in 1m, 4 left; all free in 59 s',
    )
    expect(text).toMatch(
      /^user:42: tier none\n {2}api\.log-1m .*\n {2}login\.counter-1h .*0 left; the next in \d+ minutes; all free in \d+ /,
    )
  })

  it('inspect goes by the type of the subject, and finds what is charged beside others or by its name', async () => {
    const { limiter } = inMemory()
    expect((await limiter.inspect('tenant:acme')).limits.map(({ name }) => name)).toContain('org.log-1m')
    expect((await limiter.inspect('apikey:k1')).limits.map(({ rule }) => rule)).toContain('keys')
    await limiter.check('user:42', { policy: 'spare', scope: 'upload' })
    const { limits } = await limiter.inspect('user:42', { scope: 'upload' })
    expect(limits).toContainEqual(expect.objectContaining({ rule: 'asked', name: 'spare.log-1m', used: 1 }))
  })

  it('inspect shows a secret only as the store has it', async () => {
    const { limiter } = inMemory()
    expect(JSON.stringify(await limiter.inspect('apikey:canary'))).not.toContain('canary')
  })

  it('inspect shows the networks around an IPv6 caller', async () => {
    const { limiter } = inMemory()
    const { limits } = await limiter.inspect('ip:2001:db8:1:2::1')
    expect(limits).toContainEqual(
      expect.objectContaining({ rule: 'default', name: 'api.log-1m/48', subject: 'ip:2001:db8:1::/48' }),
    )
  })

  it('inspect rejects a tier that the file does not have', async () => {
    const { limiter } = inMemory()
    await expect(limiter.inspect('user:42', { tier: 'gold' })).rejects.toThrow('tier: expected one of')
  })

  it('inspect names the keys as they are in Redis', async () => {
    const { limiter, server } = await onRedis()
    await limiter.request({ subject: 'user:42', ...LOGIN })
    await limiter.request({ subject: 'user:42', path: '/reports' })
    await limiter.request({ subject: 'user:42', path: '/' })
    const { limits } = await limiter.inspect('user:42')
    const stored = (await sendCommand(server.port, 'KEYS', '*user:42*')) as unknown as string[]
    expect(limits.map(({ key }) => key).sort()).toEqual([...stored].sort())
  })

  it('inspect rejects while the store does not answer, rather than to show a guess', async () => {
    const { limiter, server } = await onRedis()
    await limiter.request({ subject: 'user:42' })
    await server.stop()
    await expect(limiter.inspect('user:42')).rejects.toMatchObject({ code: 'ERR_HEADGATE_STORE_UNAVAILABLE' })
  })
})

describe('reset of a subject', () => {
  it('reset forgets all that is kept about a subject alone', async () => {
    const { limiter } = inMemory()
    await limiter.request({ subject: 'user:42', ...LOGIN })
    await limiter.request({ subject: 'user:42', path: '/reports' })
    await limiter.request({ subject: 'user:7', path: '/reports' })
    await limiter.reset('user:42')
    expect((await limiter.inspect('user:42')).limits.map(({ used }) => used)).toEqual([0, 0, 0])
    expect((await limiter.inspect('user:7')).limits.map(({ used }) => used)).toEqual([0, 0, 1])
  })
})
