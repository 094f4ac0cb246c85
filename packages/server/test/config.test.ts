import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ConfigError, formatProblem } from '../src/config/config-problem.js'
import { loadConfig } from '../src/config/load-config.js'
import { parseConfig } from '../src/config/parse-config.js'

const REJECTED = new URL('./fixtures/config/rejected/', import.meta.url)

function problemsOf(text: string): string[] {
  try {
    parseConfig(text, 'headgate.yaml')
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map(formatProblem)
    throw error
  }
  return []
}

describe('a policy file with a mistake is refused, and every mistake is named with its place', () => {
  test.each(readdirSync(REJECTED))('%s', name => {
    const text = readFileSync(new URL(name, REJECTED), 'utf8')
    const expected = [...text.matchAll(/^# expect: (.*)$/gm)].map(match => match[1])
    expect(expected).not.toEqual([])
    expect(problemsOf(text)).toEqual(expected)
  })
})

describe('what a policy file says', () => {
  test('names tiers, policies, the default and the upstream', () => {
    const config = parseConfig(
      `
tiers:
  anonymous: { minute: 5, day: unlimited }
  constructor: {}
policies:
  api:
    - { algorithm: sliding-window-log, limit: 10, window: 1m }
    - { algorithm: sliding-window-counter, limit: 100, window: 3600, buckets: 6, name: hourly }
  login: { algorithm: token-bucket, capacity: 5, refillPerSecond: 0.1 }
default: { policy: api }
upstream: http://[::1]:3000
`,
      'headgate.yaml',
    )
    expect(config.tiers).toEqual({ anonymous: { minute: 5, day: 'unlimited' }, constructor: {} })
    expect(config.policies.api).toMatchObject([{ id: 'log-1m' }, { id: 'hourly-counter-1h-6' }])
    expect(config.policies.login).toMatchObject([{ algorithm: 'token-bucket', limit: 5 }])
    expect(config.default).toEqual({ policy: 'api' })
    expect(config.upstream).toEqual({ hostname: '::1', port: 3000, authority: '[::1]:3000' })
  })

  test('defaults to the default tiers and to anonymous callers', () => {
    const config = parseConfig('{}', 'headgate.yaml')
    expect(Object.keys(config.tiers)).toEqual(['anonymous', 'free', 'pro', 'enterprise', 'internal'])
    expect(config.default).toEqual({ tier: 'anonymous' })
    expect(config.upstream).toBeNull()
  })

  test('is what the reference shows', () => {
    const reference = readFileSync(new URL('../../../docs/reference/policy-file.md', import.meta.url), 'utf8')
    const example = /```yaml\n([\s\S]*?)```/.exec(reference)?.[1] ?? ''
    expect(Object.keys(parseConfig(example, 'example').policies)).toEqual(['api', 'login'])
  })

  test('may be said once and used again', () => {
    const config = parseConfig('tiers:\n  anonymous: &base { minute: 5 }\n  free: *base\n', 'headgate.yaml')
    expect(config.tiers.free).toEqual({ minute: 5 })
  })
})

describe('a file that cannot be read is refused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-config-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  test('because it is a folder', () => {
    expect(() => loadConfig(folder)).toThrow('expected a file; got a folder')
  })

  test('because it is not there', () => {
    expect(() => loadConfig(join(folder, 'missing.yaml'))).toThrow('got no such file')
  })

  test('because it is above one megabyte', () => {
    const file = join(folder, 'large.yaml')
    writeFileSync(file, '# large\n'.repeat(200_000))
    expect(() => loadConfig(file)).toThrow('expected at most 1048576 bytes; got more')
  })

  test('because it is not UTF-8', () => {
    const file = join(folder, 'latin1.yaml')
    writeFileSync(file, Buffer.from('tiers: \xe9', 'latin1'))
    expect(() => loadConfig(file)).toThrow('expected text in UTF-8')
  })
})

test('a megabyte of distinct keys is read in a time that grows with its length', () => {
  const timeOf = (keys: number) => {
    const text = Array.from({ length: keys }, (_, index) => `k${index}: 1`).join('\n')
    const began = performance.now()
    expect(problemsOf(text).length).toBeGreaterThan(0)
    return performance.now() - began
  }
  timeOf(1_000)
  // Comparing every key with every other would take a hundred times as long.
  expect(timeOf(10_000) / timeOf(1_000)).toBeLessThan(50)
})
