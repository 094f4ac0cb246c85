import { validateHeaderName, validateHeaderValue } from 'node:http'
import fc from 'fast-check'
import { parseDictionary, parseList } from 'structured-headers'
import { expect, it } from 'vitest'
import type { HeaderField } from '../decision/headers.js'
import {
  createLimiter,
  type Decision,
  decisionHeaders,
  defaultTiers,
  type HeaderOptions,
  type Limit,
  memoryStore,
  slidingWindowCounter,
  slidingWindowLog,
  tokenBucket,
} from '../index.js'

const MAX_UNITS = 2 ** 32 - 1

const units = fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: MAX_UNITS }))
const windowMs = fc.oneof(fc.integer({ min: 1, max: 5_000 }), fc.integer({ min: 1, max: 366 * 86_400_000 }))

const anyLimit: fc.Arbitrary<Limit> = fc.oneof(
  fc.tuple(units, windowMs).map(([limit, ms]) => slidingWindowLog({ limit, window: `${ms}ms` })),
  fc.tuple(units, windowMs).map(([limit, ms]) => slidingWindowCounter({ limit, window: `${ms}ms` })),
  fc
    .tuple(units, windowMs, fc.integer({ min: 1, max: 20 }))
    .map(([limit, ms, buckets]) =>
      slidingWindowCounter({ limit, window: `${ms}ms`, buckets: Math.min(ms, buckets) }),
    ),
  fc
    .tuple(units, fc.double({ min: 0.001, max: 1e9, noNaN: true }))
    .map(([capacity, fillSeconds]) =>
      tokenBucket({ capacity, refillPerSecond: Math.max(1, capacity) / fillSeconds }),
    ),
)

const anyAsk = fc.record({
  afterUs: fc.oneof(
    fc.constant(0),
    fc.integer({ min: 0, max: 3_000_000 }),
    fc.integer({ min: 0, max: 1e12 }),
  ),
  cost: fc.oneof(fc.integer({ min: 0, max: 25 }), units),
  target: fc.constantFrom('policy', ...(Object.keys(defaultTiers) as (keyof typeof defaultTiers)[])),
})

const anyRun = fc.record({
  limits: fc.uniqueArray(anyLimit, { minLength: 1, maxLength: 3, selector: limit => limit.id }),
  asks: fc.array(anyAsk, { minLength: 1, maxLength: 12 }),
})

type Run = typeof anyRun extends fc.Arbitrary<infer T> ? T : never

function setUp(run: Run) {
  const clock = {
    us: 1_732_064_340_000_000,
    nowUs: () => clock.us,
    unixMs: () => Math.floor(clock.us / 1000),
  }
  const store = memoryStore({ clock })
  const limiter = createLimiter({ clock, store, policies: { policy: run.limits }, tiers: defaultTiers })
  const check = ({ target, cost }: Run['asks'][number]) =>
    limiter.check('user:1', target === 'policy' ? { policy: target, cost } : { tier: target, cost })
  return { clock, check }
}

function headerOf(headers: readonly HeaderField[], name: string): string {
  return headers.find(([header]) => header === name)?.[1] ?? ''
}

function expectLegal(decision: Decision, options: HeaderOptions): readonly HeaderField[] {
  const headers = decisionHeaders(decision, options)
  for (const [name, value] of headers) {
    validateHeaderName(name)
    validateHeaderValue(name, value)
  }
  const names = headers.map(([name]) => name.toLowerCase())
  expect(new Set(names).size).toBe(names.length)
  return headers
}

/** Remaining is what can be used now: at most Burst, and without one at most Limit. */
function expectLegacy(decision: Decision): void {
  const headers = expectLegal(decision, {})
  const atOnce = headerOf(headers, 'X-RateLimit-Burst') || headerOf(headers, 'X-RateLimit-Limit')
  expect(Number(headerOf(headers, 'X-RateLimit-Remaining'))).toBeLessThanOrEqual(Number(atOnce))
}

function expectDraft11(decision: Decision): void {
  const headers = expectLegal(decision, { style: 'ietf' })
  const policies = parseList(headerOf(headers, 'RateLimit-Policy'))
  expect(policies.map(([name]) => name)).toEqual(decision.verdicts.map(({ name }) => name))
  for (const [, parameters] of policies) {
    expect(parameters.get('q')).toSatisfy(Number.isInteger)
    expect(parameters.get('w')).toSatisfy((w: number) => Number.isInteger(w) && w >= 1)
  }
  const [item, ...others] = parseList(headerOf(headers, 'RateLimit'))
  expect(others).toEqual([])
  const policy = policies.find(([name]) => name === item?.[0])?.[1]
  const atOnce = (policy?.get('headgate-burst') ?? policy?.get('q')) as number
  expect(item?.[1].get('r')).toSatisfy((r: number) => Number.isInteger(r) && r >= 0 && r <= atOnce)
  expect(item?.[1].get('t')).toSatisfy((t: number) => Number.isInteger(t) && t >= 1)
  const retryAfter = headerOf(headers, 'Retry-After')
  if (retryAfter !== '') expect(Number(retryAfter)).toBe(item?.[1].get('t'))
}

function expectOlderDrafts(decision: Decision): void {
  parseList(headerOf(expectLegal(decision, { draft: 'draft-03' }), 'X-RateLimit-Limit'))
  parseList(headerOf(expectLegal(decision, { draft: 'draft-06' }), 'RateLimit-Policy'))
  const draft07 = expectLegal(decision, { draft: 'draft-07' })
  expect([...parseDictionary(headerOf(draft07, 'RateLimit')).keys()]).toEqual(['limit', 'remaining', 'reset'])
}

it('headers of any decision parse, are legal in Node and never promise more than the policy', async () => {
  await fc.assert(
    fc.asyncProperty(anyRun, async run => {
      const { clock, check } = setUp(run)
      for (const ask of run.asks) {
        clock.us += ask.afterUs
        const decision = await check(ask)
        expectLegacy(decision)
        expectDraft11(decision)
        expectOlderDrafts(decision)
      }
    }),
    { numRuns: 300 },
  )
})

it('a client that obeys Retry-After is admitted, and without one no waiting would have helped', async () => {
  await fc.assert(
    fc.asyncProperty(anyRun, async run => {
      const { clock, check } = setUp(run)
      for (const ask of run.asks) {
        clock.us += ask.afterUs
        const decision = await check(ask)
        if (decision.allowed) continue
        const retryAfter = headerOf(decisionHeaders(decision), 'Retry-After')
        if (retryAfter === '') {
          expect(decision.reason).toBe('exceeds-capacity')
          continue
        }
        expect(retryAfter).toMatch(/^[1-9]\d*$/)
        clock.us += Number(retryAfter) * 1_000_000
        expect((await check(ask)).allowed).toBe(true)
      }
    }),
    { numRuns: 300 },
  )
})
