/** A limit in shadow lets every request pass, whatever fails and whatever the failure mode says. */
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { defineConfig } from '../../src/config.ts'
import { createLimiter, slidingWindowLog } from '../../src/index.ts'
import { checkLimits } from '../../src/limiter/given-limits.js'
import { redisStore } from '../../src/redis.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'

const SILENT = { info() {}, warn() {}, error() {} }
const LIMIT = 2
const log = slidingWindowLog({ limit: LIMIT, window: '1h' })

let server: RedisProcess
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

type Mode = 'local' | 'open' | 'closed'
/** That of the file, and that of the store. */
const MODES = [
  ['local', 'closed'],
  ['open', 'open'],
  ['closed', 'closed'],
] as const

function gateWith(port: number, file: object, ofStore: Mode | 'throw') {
  const client = new Redis({ port, lazyConnect: true })
  client.on('error', () => {})
  const options = { deadlineMs: 30, connectTimeoutMs: 100, logger: SILENT, onWarning: () => {} }
  const store = redisStore(client, { ...options, onStoreFailure: ofStore })
  const config = defineConfig({ policies: { log }, default: { policy: 'log' }, ...file })
  const limiter = createLimiter({ config, store, logger: SILENT })
  closing.push(
    () => limiter.close(),
    () => client.disconnect(),
  )
  return limiter
}

const SHADOWS: Record<string, (mode: Mode) => object> = {
  'the file': mode => ({ mode: 'shadow', onStoreFailure: mode }),
  'a share of the callers': mode => ({ enforce: '0%', onStoreFailure: mode }),
  'a policy that is strict by itself': mode => ({
    mode: 'shadow',
    policies: { log: { limits: [log], onStoreFailure: mode } },
  }),
  'a policy': mode => ({
    policies: { log: { limits: [log], mode: 'shadow', onStoreFailure: mode } },
    onStoreFailure: mode,
  }),
}

type RuleLimiter = ReturnType<typeof gateWith>

async function deniedBy(limiter: RuleLimiter): Promise<number> {
  const subject = 'user:1'
  const given = { subject, policy: 'given', limit: log } as const
  let denied = 0
  for (let time = 0; time < 2 * LIMIT; time++) {
    const decisions = [
      await limiter.request({ subject, method: 'GET', path: '/orders' }),
      await limiter.requestNow({ subject, method: 'GET', path: '/orders' }),
      await limiter.check(subject, { policy: 'log' }),
      await limiter.check(subject, { policy: 'log', onStoreFailure: 'closed' }),
      await limiter.peek(subject, { policy: 'log', cost: 2 * LIMIT }),
      (await checkLimits(limiter, { alternatives: [[]], shadow: [given] })).decision,
      limiter.fallback({ method: 'GET', path: '/orders' }),
      limiter.fallback(),
    ]
    denied += decisions.filter(({ allowed }) => !allowed).length
  }
  return denied
}

describe.each(Object.keys(SHADOWS))('%s in shadow denies nobody', name => {
  const file = SHADOWS[name] as (typeof SHADOWS)[string]

  it.each(MODES)(
    'in the failure mode %s, on a store in mode %s, with Redis there, frozen and gone',
    async (mode, ofStore) => {
      expect(await deniedBy(gateWith(server.port, file(mode), ofStore))).toBe(0)
      // Nobody listens on the discard port.
      expect(await deniedBy(gateWith(9, file(mode), ofStore))).toBe(0)
      const frozen = gateWith(server.port, file(mode), ofStore)
      await frozen.ready()
      process.kill(server.pid, 'SIGSTOP')
      try {
        expect(await deniedBy(frozen)).toBe(0)
      } finally {
        process.kill(server.pid, 'SIGCONT')
      }
    },
  )
})

it('a limit in shadow beside one that binds does not change what a failure denies', async () => {
  const rules = [
    { name: 'login', match: { path: '/login' }, policy: 'log', onStoreFailure: 'closed' },
    { name: 'new', match: { path: '/new' }, policy: 'log', mode: 'shadow', onStoreFailure: 'closed' },
  ] as const
  const limiter = gateWith(9, { rules, levels: 'all' }, 'local')
  const ask = async (path: string) =>
    (await limiter.request({ subject: 'user:1', method: 'GET', path })).allowed
  expect([await ask('/login'), await ask('/new')]).toEqual([false, true])
})
