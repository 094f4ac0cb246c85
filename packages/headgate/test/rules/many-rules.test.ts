/**
 * The cost of a large file grows with its size, that of a request's lookup does not. Steps are counted, not timed.
 */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { defineConfig, parseConfig } from '../../src/config.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import type { OverrideOptions } from '../../src/policy/override.js'

afterEach(() => void vi.restoreAllMocks())

type Match = { method?: string; path?: `/${string}`; scope?: string }

const KINDS: Record<string, (index: number) => Match> = {
  'paths of their own': index => ({ path: `/api/v${index % 7}/things${index}/:id` }),
  'one path and a scope of their own': index => ({ path: '/things/:id', scope: `s${index}` }),
  'a scope of their own': index => ({ scope: `s${index}` }),
  'parameters in front': index => ({ path: `/:tenant/things${index}`, method: index % 2 ? 'POST' : 'GET' }),
}

function configWith(count: number, match: (index: number) => Match) {
  const rules = Array.from({ length: count }, (_, index) => ({
    name: `r${index}`,
    match: match(index) as never,
    policy: 'api' as const,
    ...(index % 3 === 0 && { cost: 2 }),
  }))
  const costs = Object.fromEntries(Array.from({ length: count }, (_, index) => [`/costs/${index}`, 2]))
  return defineConfig({
    policies: { api: { algorithm: 'sliding-window-log', limit: 100, window: '1m' } },
    rules,
    costs,
  })
}

/** Counts lookups in maps and sets, and steps through lists. */
function stepsOf(work: () => void): number {
  const spies = [
    vi.spyOn(Map.prototype, 'get'),
    vi.spyOn(Map.prototype, 'set'),
    vi.spyOn(Map.prototype, 'has'),
    vi.spyOn(Set.prototype, 'has'),
    vi.spyOn(Array.prototype, 'includes'),
    vi.spyOn(Array.prototype, 'find'),
  ]
  work()
  const steps = spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0)
  for (const spy of spies) spy.mockRestore()
  return steps
}

describe.each(Object.entries(KINDS))('rules with %s', (_, match) => {
  it('rules are found in as many steps among 10,000 as among 10', () => {
    const lookUp = (count: number) => {
      const limiter = createLimiter({ config: configWith(count, match) })
      const { path = '/things/42', ...facts } = match(count - 1)
      const request = {
        subject: 'user:42',
        method: 'GET',
        ...facts,
        path: path.replace(':id', '42'),
      } as const
      limiter.explain(request)
      return stepsOf(() => void limiter.explain(request))
    }
    expect(lookUp(10_000)).toBeLessThanOrEqual(lookUp(10) * 1.1)
  })

  it('rules are put in force in steps that grow with their number', () => {
    const compile = (count: number) => stepsOf(() => void createLimiter({ config: configWith(count, match) }))
    expect(compile(4_000)).toBeLessThan(compile(1_000) * 4.4)
  })
})

it('a file of nothing but mistakes is searched for hints only as far as they are shown', async () => {
  const policies = Array.from(
    { length: 2_000 },
    (_, index) => `  policy${index}: { algorithm: token-bucket, capacity: 1, refillPerSecond: 1 }`,
  )
  const rules = Array.from(
    { length: 2_000 },
    (_, index) => `  - { match: { path: /${index} }, policy: polcy${index} }`,
  )
  const text = ['policies:', ...policies, 'rules:', ...rules].join('\n')
  const lowered = vi.spyOn(String.prototype, 'toLowerCase')
  const error = (await parseConfig(text, 'a.yaml').catch((error: unknown) => error)) as Error
  expect(lowered.mock.calls.length).toBeLessThan(200_000)
  expect(error.message).toContain('2000 problems')
  expect(error.message).toContain('did you mean "policy0"')
  expect(error.message).toContain('and 1980 more; got "polcy0"')
  expect(error.message.length).toBeLessThan(50_000)
})

describe('overrides', () => {
  const override = (index: number): OverrideOptions => ({
    subject: `user:${index}`,
    numbers: { minute: 5 },
    ttl: '1h' as const,
    by: 'ada',
    reason: 'a sale',
  })

  it('overrides are set in as many steps beside thousands as alone, and are read when they are met', async () => {
    const parsed = vi.spyOn(JSON, 'parse')
    const limiter = createLimiter({ config: defineConfig({}) })
    let work: Promise<void> | undefined
    const stepsFor = async (index: number) => {
      const steps = stepsOf(() => {
        work = limiter.overrides.set(override(index))
      })
      await work
      return steps
    }
    const first = await stepsFor(0)
    for (let index = 1; index < 2_000; index++) await limiter.overrides.set(override(index))
    expect(await stepsFor(2_000)).toBeLessThanOrEqual(first + 5)
    parsed.mockClear()
    limiter.explain({ subject: 'user:1999' })
    limiter.explain({ subject: 'user:nobody' })
    limiter.explain({ subject: 'user:1999' })
    expect(parsed.mock.calls.length).toBeLessThanOrEqual(1)
    // With the burst, the hour and the day of the tier.
    expect(limiter.explain({ subject: 'user:1999' }).levels[0]?.limits).toEqual([
      'sliding-window-log 10 in 1m',
      'token-bucket 10, refilled by 0.083333 a second',
      'sliding-window-counter 100 in 1h',
      'sliding-window-counter 1000 in 1d',
    ])
    expect(limiter.overrides.list()).toHaveLength(2_001)
  })
})
