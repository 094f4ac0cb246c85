import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/config/parse-config.js'
import type { Config } from '../../src/policy/config.js'
import { DEFAULT_TIERS } from '../../src/policy/tier-numbers.js'

function parseFixture(name: string): Promise<Config> {
  return parseConfig(
    readFileSync(new URL(`../fixtures/config/accepted/${name}`, import.meta.url), 'utf8'),
    name,
  )
}

describe('what a policy file says', () => {
  it('a policy file says which keys may take units in advance', async () => {
    const { policies } = await parseFixture('hot-keys.yaml')
    expect(policies.api?.lease).toBe('auto')
    expect(policies.search?.lease).toEqual({ max: 30, ttl: '1s' })
    expect(policies.login?.lease).toBe('off')
  })

  it('a policy file has quotas of calendar periods', async () => {
    const { policies, tiers } = await parseFixture('quotas.yaml')
    expect(tiers?.pro).toEqual({ minute: 100, month: 100_000 })
    expect(policies.plan?.limits[1]).toMatchObject({ id: 'quota-month-europe_berlin-31', rollover: 5_000 })
    expect(policies.tokens?.limits[0]).toMatchObject({ id: 'tokens-quota-week-sunday', hasOverage: true })
  })

  it('a policy file names the ready policy login, which brings what a rule for logins needs', async () => {
    const { policies, rules } = await parseFixture('login.yaml')
    expect(policies).toMatchObject({
      login: { limits: [{ limit: 5 }], ban: { limit: 3 } },
      'login-address': { limits: [{ limit: 20 }] },
    })
    const brought = { per: ['user', 'ip'], also: [{ subject: 'ip', policy: 'login-address' }] }
    expect(rules[0]).toMatchObject({ ...brought, resetIf: [{ from: 200, to: 399 }] })
    expect(rules[1]).toMatchObject({ ...brought, resetIf: [{ from: 204, to: 204 }] })
  })

  it('a policy login of its own is as the file says, and nothing is there that is not named', async () => {
    const { policies, rules } = await parseFixture('login-of-its-own.yaml')
    expect(policies).toMatchObject({ login: { limits: [{ limit: 7 }] } })
    expect(Object.keys(policies)).toEqual(['login'])
    expect(rules[0]).toMatchObject({ per: 'caller' })
    expect(rules[0]).not.toHaveProperty('also')
    expect(Object.keys((await parseFixture('empty-map.yaml')).policies)).toEqual([])
  })

  it('a policy file names a source that needs no setting by a bare word', async () => {
    const { identify } = await parseFixture('identify-by-name.yaml')
    expect(identify).toEqual([{ source: 'apikey' }, { source: 'fingerprint' }, { source: 'ip' }])
  })

  it('a policy file can say everything there is to say', async () => {
    const config = await parseFixture('environment-of-an-api.yaml')
    expect(config).toMatchObject({
      prefix: 'rl',
      tenant: 'lab',
      levels: 'all',
      mode: 'enforce',
      enforcePercent: 100,
      default: { tier: 'anonymous' },
      global: { policy: 'everyone', mode: 'shadow' },
      onStoreFailure: 'local',
      headers: 'both',
      upstream: { urls: ['http://[::1]:3000'], host: 'replace', timeoutMs: 30_000, connectTimeoutMs: 2_000 },
      trustedProxies: ['10.0.0.0/8', '192.0.2.1', 'fd00::/8', '::1'],
      skip: { prefixes: ['/_next', '/static/images/'], extensions: ['css', 'js', 'woff2'] },
    })
    expect(config.tiers).toEqual({
      anonymous: { minute: 10, hour: 100, day: 1_000, burst: 2 },
      partner: { minute: 200, day: 'unlimited', burst: 1.5 },
      constructor: {},
    })
    expect(config.policies).toMatchObject({
      api: { limits: [{ id: 'log-1m' }, { id: 'hourly-counter-1h-6' }] },
      login: { limits: [{ algorithm: { name: 'token-bucket' }, limit: 5 }] },
      simulation: {
        limits: [{ limit: 100 }],
        candidate: [{ limit: 50 }],
        enforcePercent: 25,
        onStoreFailure: 'closed',
      },
    })
    expect(config.policies.login).not.toHaveProperty('mode')
    expect(config.costs).toEqual([
      { method: 'POST', path: '/api/simulation/start', cost: 10 },
      { method: 'GET', path: '/api/simulation/:id/frames', cost: 5 },
      { method: null, path: '/api/export/*', cost: 3 },
      { method: null, path: '/', cost: 0 },
    ])
    expect([...config.subjects]).toEqual([
      ['user:42', { tier: 'partner' }],
      ['apikey:k:with:colons', { policy: 'api' }],
    ])
  })

  it('rules of a policy file get defaults for what they leave out', async () => {
    const { rules } = await parseFixture('environment-of-an-api.yaml')
    const anything = { methods: null, path: null, subjects: null, tiers: null, scopes: null }
    expect(rules).toEqual([
      {
        name: 'login',
        match: { ...anything, methods: ['POST'], path: '/login', subjects: ['ip'] },
        charge: { policy: 'login' },
        per: 'caller',
        scope: 'global',
        onStoreFailure: 'closed',
        headers: 'none',
      },
      {
        name: 'simulation',
        match: {
          methods: ['POST', 'PUT'],
          path: '/api/simulation/:id/start',
          subjects: null,
          tiers: ['anonymous', 'partner'],
          scopes: ['simulation'],
        },
        charge: { policy: 'simulation' },
        cost: 10,
        per: 'caller',
        scope: 'simulation',
      },
      {
        name: '/api/*',
        match: { ...anything, path: '/api/*' },
        charge: { policy: 'api' },
        mode: 'shadow',
        per: 'everyone',
        scope: 'global',
      },
      {
        name: 'subject:apikey|session',
        match: { ...anything, subjects: ['apikey', 'session'] },
        charge: { tier: 'partner' },
        per: 'caller',
        scope: 'global',
      },
    ])
  })

  it('an empty policy file means the default tiers, and anonymous callers', async () => {
    // The rules that a configuration carries under a symbol are no part of what it says.
    expect(Object.fromEntries(Object.entries(await parseFixture('empty-map.yaml')))).toEqual({
      tiers: DEFAULT_TIERS,
      policies: {},
      levels: 'most-specific',
      mode: 'enforce',
      enforcePercent: 100,
      default: { tier: 'anonymous' },
      global: null,
      rules: [],
      identify: null,
      subjects: new Map(),
      secretTypes: [],
      masks: { byType: {}, others: 'part' },
      ipv6Networks: { '/56': 4, '/48': 16 },
      costs: [],
      skip: { prefixes: [], extensions: [] },
      trustedProxies: [],
      forwardedHeader: 'x-forwarded-for',
      cors: null,
      upstream: null,
      routes: [],
    })
  })

  it('a policy file has routes, and upstreams in their three forms', async () => {
    const config = await parseFixture('routes.yaml')
    const upstream = { host: 'replace', timeoutMs: 30_000, connectTimeoutMs: 2_000 }
    expect(config.upstream).toEqual({ ...upstream, urls: ['http://10.0.0.1:3000', 'http://10.0.0.2:3000'] })
    expect(config.routes).toEqual([
      {
        hosts: ['api.example.com'],
        path: '/v2',
        upstream: {
          urls: ['https://10.0.1.1:8443', 'https://10.0.1.2:8443'],
          host: 'keep',
          timeoutMs: 5_000,
          connectTimeoutMs: 500,
          concurrency: { floor: 4, ceiling: 200 },
        },
      },
      {
        hosts: ['example.com', '*.example.com'],
        path: null,
        upstream: { ...upstream, urls: ['https://www.internal'] },
      },
      { hosts: null, path: '/static', upstream: { ...upstream, urls: ['http://static:8080'] } },
    ])
  })

  it('a policy file may take the word of strangers, when it says so aloud', async () => {
    const everybody = await parseFixture('trusts-everybody-aloud.yaml')
    expect(everybody).toMatchObject({ trustedProxies: 'everybody', forwardedHeader: 'forwarded' })
    expect(await parseFixture('trusts-hops-aloud.yaml')).toMatchObject({ trustedProxies: { hops: 2 } })
  })

  it('a policy file says who is asking, in the order in which it is tried', async () => {
    const { identify } = await parseFixture('identify.yaml')
    expect(identify).toEqual([
      { source: 'internal', header: 'x-service', from: ['10.0.0.0/8'], tier: 'internal' },
      { source: 'apikey', header: 'authorization', scheme: 'Bearer' },
      {
        source: 'jwt',
        jwks: './jwks.json',
        algorithms: ['RS256'],
        issuer: 'https://issuer.example',
        audience: 'api.example',
        tenantClaim: 'org',
      },
      { source: 'user', header: 'x-user-id', from: 'everybody' },
      { source: 'session', cookie: 'sid', unverified: true },
      { source: 'fingerprint', headers: ['user-agent'] },
      { source: 'ip' },
    ])
  })

  it('a policy file says how operators are shown subjects', async () => {
    const { masks } = await parseFixture('masks.yaml')
    expect(masks).toEqual({ byType: { user: 'hidden', tenant: 'whole' }, others: 'part' })
    expect(await parseFixture('masks-word.yaml')).toMatchObject({ masks: { byType: {}, others: 'whole' } })
  })

  it('a policy file has budgets for wider networks, or none', async () => {
    const { ipv6Networks } = await parseFixture('ipv6-networks.yaml')
    expect(ipv6Networks).toEqual({ '/60': 2, '/48': 64 })
    expect(await parseFixture('ipv6-networks-off.yaml')).toMatchObject({ ipv6Networks: 'off' })
  })

  it('a policy file says the same in JSON', async () => {
    const config = await parseFixture('headgate.json')
    expect(config.policies.api?.limits).toMatchObject([{ id: 'api-log-1m', limit: 100 }])
    expect(config.default).toEqual({ policy: 'api' })
    expect(config.subjects.get('user:42')).toEqual({ tier: 'pro' })
  })

  it('a policy file may say something once and use it again', async () => {
    expect((await parseFixture('aliases.yaml')).tiers.free).toEqual({ minute: 5 })
  })

  it('a policy file puts everything in shadow, and one rule by percentage', async () => {
    const { mode, rules } = await parseFixture('shadow-first.yaml')
    expect(mode).toBe('shadow')
    expect(rules[0]).toMatchObject({ name: 'reports', enforcePercent: 12.5 })
    expect(rules.map(({ name }) => name)).toEqual(['reports', '/reports/*', 'GET /a:b/%7Euser/c.d'])
  })
})

describe('the names that objects know', () => {
  it('names that objects know are ordinary names, in both formats, and reach no prototype', async () => {
    const names = ['constructor', 'toString', 'hasOwnProperty', 'valueOf']
    const tiers = Object.fromEntries([...names, 'anonymous'].map(name => [name, { minute: 1 }]))
    const text = JSON.stringify({ tiers, subjects: { 'user:__proto__': { tier: 'constructor' } } })
    for (const file of ['a.json', 'a.yaml']) {
      const config = await parseConfig(text, file)
      expect(Object.keys(config.tiers)).toEqual([...names, 'anonymous'])
      expect(config.subjects.get('user:__proto__')).toEqual({ tier: 'constructor' })
    }
    expect(({} as Record<string, unknown>).minute).toBeUndefined()
  })
})
