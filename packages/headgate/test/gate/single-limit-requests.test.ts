import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createGate, type Gate } from '../../src/gate/gate.js'
import type { DecisionEvent, GateEvent } from '../../src/observe/event.js'
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

const why = { by: 'ada', reason: 'launch' } as const

/** Creates two gates that differ only in the path a request takes: a copy of a store has no fast path. */
function bothWays() {
  const clock = manualClock()
  const gates = [memoryStore({ clock }), { ...memoryStore({ clock }) }].map(store =>
    createGate({ config, clock, store, onWarning: () => {} }),
  )
  const decideAlike = async (request: RequestFacts) => {
    const [short, full] = await Promise.all(gates.map(gate => gate.request(request)))
    expect(short?.toJSON()).toEqual(full?.toJSON())
  }
  return { clock, gates, decideAlike }
}

it('a request is decided alike by the fast path and in full', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(facts, { minLength: 1, maxLength: 25 }), async requests => {
      const { clock, gates, decideAlike } = bothWays()
      for (const gate of gates) {
        await gate.overrides.set({ subject: 'user:lifted', limits: { 'log-1m': 9 }, ttl: '1h', ...why })
      }
      for (const request of requests) {
        clock.advanceMs(700)
        await decideAlike(request)
      }
    }),
    { numRuns: 60 },
  )
})

/** Expiring overrides, switches and files follow each other on few paths, so that they meet. */
const step: fc.Arbitrary<RequestFacts | ((gate: Gate) => unknown)> = fc.oneof(
  fc
    .constantFrom('/login', '/mine/7', '/elsewhere')
    .map((path): RequestFacts => ({ subject: 'user:1', method: 'POST', path })),
  fc
    .record({
      target: fc.constantFrom({ subject: 'user:1' }, { rule: 'login' }, { rule: 'tier' }),
      units: fc.integer({ min: 0, max: 6 }),
    })
    .map(({ target, units }) => (gate: Gate) => {
      return gate.overrides.set({ ...target, limits: { 'log-1m': units }, ttl: '1s', ...why })
    }),
  fc.constantFrom(0.5, 2).map(multiplier => (gate: Gate) => gate.control.set({ multiplier })),
  fc.constant((gate: Gate) => gate.reload(config)),
)

it('a request is decided alike by both paths, whatever operators set and however it ends', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 30 }), async history => {
      const { clock, gates, decideAlike } = bothWays()
      for (const next of history) {
        clock.advanceMs(700)
        if (typeof next !== 'function') await decideAlike(next)
        else for (const gate of gates) await next(gate)
      }
    }),
    { numRuns: 100 },
  )
})

it('an override that has ended stays ended after a reload, and is not counted any more', async () => {
  const clock = manualClock()
  const counted: number[] = []
  const onEvent = (event: DecisionEvent | GateEvent) => {
    if (event.type === 'override') counted.push(event.stored)
  }
  const gate = createGate({ config, clock, onEvent })
  await gate.overrides.set({ rule: 'login', limits: { 'log-1m': 9 }, ttl: '1s', ...why })
  clock.advanceMs(1_001)
  gate.reload(config)
  const { limit } = await gate.request({ subject: 'user:1', method: 'POST', path: '/login' })
  expect(limit).toBe(2)
  await gate.control.set({ multiplier: 2 })
  expect(counted).toEqual([1, 0])
})

it('a request is refused alike by both paths: a mistake, a gate that is closed', async () => {
  const gate = createGate({ config })
  await expect(gate.request({ subject: 'nobody' as 'a:b' })).rejects.toMatchObject({
    code: 'ERR_HEADGATE_INVALID_SUBJECT',
  })
  await gate.close()
  await expect(gate.request({ subject: 'user:1' })).rejects.toMatchObject({ code: 'ERR_HEADGATE_CLOSED' })
})
