import { describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import { type ConfigError, defineConfig, parseConfig } from '../../src/config.js'

function issuesOf(options: unknown): string[] {
  try {
    defineConfig(options as Parameters<typeof defineConfig>[0])
  } catch (error) {
    return (error as ConfigError).issues.map(({ path, message }) => `${path}: ${message}`)
  }
  return []
}

describe('a configuration in code', () => {
  it('a configuration in code is the one that the same file gives', async () => {
    const inCode = defineConfig({
      policies: {
        api: slidingWindowLog({ limit: 10, window: '1m' }),
        login: { algorithm: 'token-bucket', capacity: 5, refillPerSecond: 0.1 },
        slow: { limits: [tokenBucket({ capacity: 1, refillPerSecond: 1 })], enforce: '25%' },
      },
      rules: [{ match: { method: ['POST', 'PUT'], path: '/login', tier: 'free' }, policy: 'login', cost: 2 }],
      subjects: { 'user:42': { tier: 'pro' } },
      skip: { prefixes: ['/_next'] },
    })
    const inFile = await parseConfig(
      `
policies:
  api: { algorithm: sliding-window-log, limit: 10, window: 1m }
  login: { algorithm: token-bucket, capacity: 5, refillPerSecond: 0.1 }
  slow: { limits: { algorithm: token-bucket, capacity: 1, refillPerSecond: 1 }, enforce: 25% }
rules:
  - { match: { method: [POST, PUT], path: /login, tier: free }, policy: login, cost: 2 }
subjects: { "user:42": { tier: pro } }
skip: { prefixes: [/_next] }
`,
      'headgate.yaml',
    )
    expect(inCode).toEqual(inFile)
  })

  it('a configuration in code takes undefined for left out', () => {
    const options = { mode: undefined, tenant: undefined } as unknown as Parameters<typeof defineConfig>[0]
    expect(defineConfig(options)).toEqual(defineConfig({}))
  })

  it('a configuration in code has the same issues as a file, by path', () => {
    expect(
      issuesOf({
        mode: 'shadwo',
        policies: {
          api: [slidingWindowLog({ limit: 1, window: '1m' }), { algorithm: 'token-bucket', capacity: 1 }],
        },
        rules: [{ match: { path: 'login' }, policy: 'apu' }, () => 1],
        trustedProxies: true,
      }),
    ).toEqual([
      'policies.api[1].refillPerSecond: expected a number above 0 and up to 4294967295000; got nothing',
      'mode: expected one of enforce, shadow, compare; got "shadwo"; did you mean "shadow"?',
      'rules[0].match.path: expected a path such as /users/:id/posts or /files/*, without query and regular expressions; got "login"',
      'rules[0].policy: expected one of api, login, login-address; got "apu"; did you mean "api"?',
      'rules[1]: expected a map; got a function',
      'trustedProxies: expected a list of addresses and networks, everybody, or { hops }; got true',
    ])
    expect(issuesOf(null)).toEqual([': expected a map; got nothing'])
    expect(issuesOf([])).toEqual([': expected a map; got a list of 0'])
  })

  it('a configuration in code rejects what only looks like a limit that was made', () => {
    const forged = { algorithm: 'fixed-window', id: 'x', quota: {}, limit: 5 }
    expect(issuesOf({ policies: { api: forged } })).not.toEqual([])
  })

  it('an issue of a configuration never shows the id of a subject', () => {
    const secret = 'canary-7f3a'
    for (const subjects of [
      { [secret]: { tier: 'pro' } },
      { [`apikey:${secret}`]: { tier: 'prro', x: 1 } },
      `apikey:${secret}`,
      [`apikey:${secret}`],
    ]) {
      const issues = issuesOf({ subjects })
      expect(issues).not.toEqual([])
      expect(issues.join('\n')).not.toContain('canary')
    }
  })

  it('a configuration with names that do not exist does not compile', () => {
    const policies = { api: slidingWindowLog({ limit: 1, window: '1m' }) }
    // @ts-expect-error there is no such policy
    expect(() => defineConfig({ policies, default: { policy: 'apu' } })).toThrow('got "apu"')
    // @ts-expect-error there is no such tier
    expect(() => defineConfig({ rules: [{ match: { path: '/a' }, tier: 'gold' }] })).toThrow('got "gold"')
    // @ts-expect-error there is no such tier
    expect(() => defineConfig({ tiers: { gold: {} }, default: { tier: 'free' } })).toThrow('got "free"')
    const match = { path: '/a' } as const
    // @ts-expect-error there is no such policy
    expect(() => defineConfig({ policies, rules: [{ match, policy: 'apu' }] })).toThrow('got "apu"')
    // @ts-expect-error there is no such tier
    expect(() => defineConfig({ identify: [{ ip: { tier: 'gold' } }] })).toThrow('got "gold"')
    expect(defineConfig({ tiers: { gold: {} }, default: { tier: 'gold' } }).default).toEqual({ tier: 'gold' })
  })

  it('a configuration of another shape than the file does not compile', () => {
    // @ts-expect-error no such field
    expect(() => defineConfig({ polices: {} })).toThrow('did you mean "policies"?')
    // @ts-expect-error no such mode
    expect(() => defineConfig({ mode: 'shadwo' })).toThrow('did you mean "shadow"?')
    // @ts-expect-error a percentage is a text
    expect(() => defineConfig({ enforce: 25 })).toThrow('such as 25%')
    // @ts-expect-error a rule says what it matches
    expect(() => defineConfig({ rules: [{ tier: 'free' }] })).toThrow('rules[0].match')
    // @ts-expect-error a path starts with a slash
    expect(() => defineConfig({ rules: [{ match: { path: 'a' }, tier: 'free' }] })).toThrow('got "a"')
    // @ts-expect-error a tier or a policy
    expect(() => defineConfig({ default: {} })).toThrow('either a tier or a policy')
    // @ts-expect-error this source needs settings
    expect(() => defineConfig({ identify: ['user'] })).toThrow('identify[0].user.header')
    // @ts-expect-error this timeout has no unit
    expect(() => defineConfig({ upstream: { urls: 'http://a', timeout: '5' } })).toThrow('upstream.timeout')
    const upstream = { urls: ['http://a:1'], timeout: '5s', concurrency: { floor: 1, ceiling: 2 } } as const
    expect(defineConfig({ upstream }).upstream).toMatchObject({ timeoutMs: 5_000 })
  })
})
