import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createGate } from '../../src/gate/gate.js'
import type { RequestFacts } from '../../src/policy/request-facts.js'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { configOf, perMinute, ruleOf } from '../support/gate-config.ts'

const config = configOf({
  policies: { api: perMinute(4), login: perMinute(2), none: perMinute(0) },
  default: { policy: 'api' },
  rules: [
    ruleOf({ name: 'login', match: { methods: ['POST'], path: '/login' }, charge: { policy: 'login' } }),
    ruleOf({ name: 'tier', match: { path: '/mine/:id' } }),
    ruleOf({ name: 'dear', match: { path: '/dear' }, charge: { policy: 'api' }, cost: 2 }),
    ruleOf({ name: 'watched', match: { path: '/watched' }, charge: { policy: 'login' }, mode: 'shadow' }),
    ruleOf({ name: 'scoped', match: { path: '/scoped' }, charge: { policy: 'login' }, scope: 'files' }),
    ruleOf({ name: 'users', match: { path: '/x', subjects: ['user'] }, charge: { policy: 'login' } }),
  ],
  costs: [{ method: null, path: '/costly', cost: 3 }],
  skip: { prefixes: ['/assets'], extensions: ['css'] },
  subjects: new Map([['user:13', { policy: 'none' }]]),
})

const facts: fc.Arbitrary<RequestFacts> = fc.record(
  {
    subject: fc.constantFrom(
      'user:1',
      'user:13',
      'ip:192.0.2.1',
      'ip:2001:db8::1',
      'apikey:s3cret',
      'user:lifted',
    ),
    method: fc.constantFrom('GET', 'POST', 'post'),
    path: fc.constantFrom(
      ...['/login', '/mine/7', '/dear', '/watched', '/scoped', '/x', '/costly', '/assets/a', '/a.css', '/'],
      ...['/public/../login', '/LOGIN', '/login?x=1', '/elsewhere'],
    ),
    tier: fc.constantFrom('pro', 'free'),
    claimedMethods: fc.constantFrom([], ['POST']),
    cost: fc.constantFrom(0, 2),
  },
  { requiredKeys: ['subject'] },
)

it('a request is decided alike by the fast path and in full', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(facts, { minLength: 1, maxLength: 25 }), async requests => {
      const clock = manualClock()
      // A copy of a store has no short way.
      const gates = [memoryStore({ clock }), { ...memoryStore({ clock }) }].map(store =>
        createGate({ config, clock, store, onWarning: () => {} }),
      )
      for (const gate of gates) {
        const why = { ttl: '1h', by: 'ada', reason: 'launch' } as const
        await gate.overrides.set({ subject: 'user:lifted', limits: { 'log-1m': 9 }, ...why })
      }
      for (const request of requests) {
        clock.advanceMs(700)
        const [short, full] = await Promise.all(gates.map(gate => gate.request(request)))
        expect(short?.toJSON()).toEqual(full?.toJSON())
      }
    }),
    { numRuns: 60 },
  )
})

it('a request is refused alike by both paths: a mistake, a gate that is closed', async () => {
  const gate = createGate({ config })
  await expect(gate.request({ subject: 'nobody' as 'a:b' })).rejects.toMatchObject({
    code: 'ERR_HEADGATE_INVALID_SUBJECT',
  })
  await gate.close()
  await expect(gate.request({ subject: 'user:1' })).rejects.toMatchObject({ code: 'ERR_HEADGATE_CLOSED' })
})
