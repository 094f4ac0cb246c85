import { betterAuth } from 'better-auth'
import { expect, it } from 'vitest'
import { betterAuthStorage } from '../../src/better-auth.ts'
import { createLimiter, type Limiter, memoryStore, slidingWindowLog } from '../../src/index.ts'
import { faultyStore, guardedStore, manualClock } from '../../src/testing/index.ts'
import { keepLines } from '../support/kept-lines.ts'

const policies = { api: slidingWindowLog({ limit: 1, window: '1m' }) }

function authWith(limiter: Limiter<'api', never>) {
  const { logger, lines } = keepLines()
  const auth = betterAuth({
    baseURL: 'http://localhost:3000',
    secret: 'a secret of thirty-two characters!!',
    emailAndPassword: { enabled: true },
    logger: { disabled: true },
    advanced: { ipAddress: { ipAddressHeaders: ['x-client-ip'] } },
    rateLimit: {
      enabled: true,
      window: 60,
      max: 5,
      customStorage: betterAuthStorage({ limiter, logger }),
    },
  })
  const ask = (path: string, ip: string) =>
    auth.handler(new Request(`http://localhost:3000/api/auth${path}`, { headers: { 'x-client-ip': ip } }))
  return { ask, lines }
}

it('better-auth admits as many as its rules say, by address and path, also all at once', async () => {
  const clock = manualClock()
  const { ask } = authWith(createLimiter({ policies, clock }))
  const statuses = await Promise.all(
    Array.from({ length: 20 }, async () => (await ask('/ok', '203.0.113.1')).status),
  )
  expect(statuses.filter(status => status === 200)).toHaveLength(5)
  expect((await ask('/ok', '203.0.113.2')).status).toBe(200)
  expect((await ask('/get-session', '203.0.113.1')).status).toBe(200)
  clock.advanceMs(59_000)
  const denied = await ask('/ok', '203.0.113.1')
  expect([denied.status, denied.headers.get('x-retry-after')]).toEqual([429, '1'])
  clock.advanceMs(1_000)
  expect((await ask('/ok', '203.0.113.1')).status).toBe(200)
})

it('two processes of better-auth share their counts in the store', async () => {
  const store = memoryStore()
  const [one, other] = [
    authWith(createLimiter({ policies, store })),
    authWith(createLimiter({ policies, store })),
  ]
  const statuses: number[] = []
  for (let time = 0; time < 6; time++)
    statuses.push((await (time % 2 ? one : other).ask('/ok', '203.0.113.1')).status)
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
})

it('a store that fails is no error of better-auth: the failure mode decides', async () => {
  const faulty = faultyStore(memoryStore())
  faulty.faults.always({ type: 'error' })
  for (const [onStoreFailure, status] of [
    ['open', 200],
    ['closed', 429],
    ['throw', 200],
  ] as const) {
    const { ask, lines } = authWith(
      createLimiter({
        policies,
        store: guardedStore(faulty, { onStoreFailure, logger: keepLines().logger }),
      }),
    )
    expect([onStoreFailure, (await ask('/ok', '203.0.113.1')).status]).toEqual([onStoreFailure, status])
    expect(lines).toHaveLength(onStoreFailure === 'throw' ? 1 : 0)
  }
})
