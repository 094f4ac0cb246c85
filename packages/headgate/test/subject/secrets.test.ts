import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { defineConfig } from '../../src/config.js'
import { createLimiter, type RuleLimiter } from '../../src/limiter/limiter.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import type { SubjectInput, SubjectWarning } from '../../src/subject/subject.js'
import { startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'

const cleanUps: (() => Promise<unknown> | unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

const CANARY = 'sk_live_canary_4eC39HqLyjWDarjtT1zdp7dc'
const api = slidingWindowLog({ limit: 3, window: '1m' })
const SECRET_TYPES = ['apikey', 'ApiKey', 'API-KEY', 'token', 'Session', 'access_token', 'license']

async function redis() {
  const server = await startRedis()
  const client = new Redis({ port: server.port, lazyConnect: true })
  const store = redisStore(client, { deadlineMs: 500 })
  cleanUps.push(
    () => server.stop(),
    () => client.disconnect(),
    () => store.close(),
  )
  await store.ready?.()
  return { port: server.port, store }
}

describe('secrets in Redis', () => {
  it('secrets in Redis are digests, whatever their type is called and however it is spelt', async () => {
    const { port, store } = await redis()
    const told: SubjectWarning[] = []
    const subject = {
      secretTypes: ['License'],
      onWarning: (warning: SubjectWarning) => void told.push(warning),
    }
    const limiter = createLimiter({ store, policies: { api }, subject })
    for (const type of SECRET_TYPES) {
      const decision = await limiter.check({ type, id: CANARY }, { policy: 'api' })
      expect(decision).toMatchObject({ allowed: true, source: 'redis' })
    }
    const keys = (await sendCommand(port, 'KEYS', '*')) as string[]
    expect(keys.join('\n')).not.toContain(CANARY)
    // apikey and ApiKey are one caller; the others differ by more than case.
    expect(keys.filter(key => key.includes('api.log-1m'))).toHaveLength(SECRET_TYPES.length - 1)
    expect(told.map(({ code }) => code)).toEqual(['WARN_HEADGATE_DEFAULT_SECRET'])
  })
})

describe('a policy file', () => {
  const config = defineConfig({
    policies: { api },
    default: { policy: 'api' },
    secretTypes: ['License'],
    rules: [{ name: 'licensed', match: { subject: 'LICENSE' }, policy: 'api' }],
  })
  const chargedTo = (limiter: RuleLimiter, subject: SubjectInput) =>
    limiter.explain({ subject }).levels.find(({ level }) => level === 'caller')

  it('a policy file says which other types are secret, and its rules find them in any case', () => {
    const ruled = createLimiter({ config, subject: { secret: 's' } })
    cleanUps.push(() => ruled.close())
    const level = chargedTo(ruled, `License:${CANARY}`)
    expect(level).toMatchObject({ rule: 'licensed' })
    expect(level?.subject).toMatch(/^license:~[0-9a-f]{32}$/)
  })

  it('a policy file may name a secret type later: a reload takes it up', async () => {
    const ruled = createLimiter({ config: { ...config, secretTypes: [] }, subject: { secret: 's' } })
    cleanUps.push(() => ruled.close())
    expect(chargedTo(ruled, `license:${CANARY}`)?.subject).toBe(`license:${CANARY}`)
    await ruled.reload(config)
    expect(chargedTo(ruled, `license:${CANARY}`)?.subject).not.toContain(CANARY)
  })

  it('a limiter warns when no secret is set', () => {
    const warnings: string[] = []
    const ruled = createLimiter({ config, onWarning: message => warnings.push(message) })
    cleanUps.push(() => ruled.close())
    ruled.explain({ subject: `token:${CANARY}` })
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatch(/^WARN_HEADGATE_DEFAULT_SECRET: subject\.secret: /)
    expect(warnings[0]).not.toContain(CANARY)
  })
})
