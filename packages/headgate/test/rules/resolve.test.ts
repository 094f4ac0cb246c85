import { describe, expect, it } from 'vitest'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import { activateConfig } from '../../src/policy/active-config.js'
import { claimedMethods } from '../../src/policy/claimed-methods.js'
import { compileConfig } from '../../src/policy/compiled-config.js'
import type { Config, RuleConfig } from '../../src/policy/config.js'
import { type Control, NORMAL } from '../../src/policy/control.js'
import type { Override } from '../../src/policy/override.js'
import { pathReadings } from '../../src/policy/path-readings.js'
import { resolve } from '../../src/policy/resolve.js'
import { runAtOnce } from '../../src/time/steps.js'
import { configOf, overridesOf, perMinute, ruleOf, type TimedOverride } from '../support/rule-config.ts'

interface Facts {
  subjects?: string[]
  method?: string
  claimedMethods?: string[]
  path?: string
  tier?: string
  scope?: string
  cost?: number
}

function inForceOf(config: Partial<Config>, control: Control = NORMAL, overrides: TimedOverride[] = []) {
  return activateConfig(runAtOnce(compileConfig(configOf(config), subject => subject)), {
    control,
    overrides: overridesOf(overrides),
    defaultFailure: 'local',
  })
}

function resolved(
  config: Partial<Config>,
  facts: Facts,
  extra: { control?: Control; overrides?: Override[] } = {},
) {
  const overrides = (extra.overrides ?? []).map(override => ({ override, endsAtUs: 1_000 }))
  return resolve(
    inForceOf(config, extra.control, overrides),
    {
      subjects: facts.subjects ?? ['ip:192.0.2.1'],
      methods: [facts.method ?? null, ...(facts.claimedMethods ?? [])],
      path: facts.path === undefined ? null : (pathReadings(facts.path) ?? 'too-many'),
      tier: facts.tier ?? null,
      scope: facts.scope ?? null,
      cost: facts.cost ?? null,
    },
    0,
  )
}

/** The facts of a request by a user of whom nothing more is known. */
const OF_A_USER = { subjects: ['user:42'], tier: null, scope: null, cost: null }

/** Returns `subject scope name limit` of every check, by alternative. */
function asked(config: Partial<Config>, facts: Facts, extra?: Parameters<typeof resolved>[2]) {
  const { alternatives } = resolved(config, facts, extra).question
  return alternatives.map(checks =>
    checks.map(({ subject, scope, name, limit }) => `${subject} ${scope} ${name} ${limit.limit}`),
  )
}

const POLICIES = { login: perMinute(5), api: perMinute(100), everything: perMinute(1_000) }
const LOGIN = ruleOf({
  name: 'login',
  match: { methods: ['POST'], path: '/login' },
  charge: { policy: 'login' },
})

describe('rules', () => {
  it('rules are matched by method and path, the first one on its level', () => {
    const rules = [LOGIN, ruleOf({ name: 'any', match: { path: '/login' }, charge: { policy: 'api' } })]
    expect(asked({ policies: POLICIES, rules }, { method: 'POST', path: '/login' })).toEqual([
      ['ip:192.0.2.1 global login.log-1m 5'],
    ])
    expect(asked({ policies: POLICIES, rules }, { method: 'GET', path: '/login' })).toEqual([
      ['ip:192.0.2.1 global api.log-1m 100'],
    ])
  })

  it.each(['/LOGIN', '/login/', '/%6cogin', '/x/../login', '//login', '/login;v=1', '/login?next=/'])(
    'rules are not escaped by the spelling %s',
    path => {
      expect(asked({ policies: POLICIES, rules: [LOGIN] }, { method: 'POST', path })[0]?.[0]).toContain(
        'login.log',
      )
    },
  )

  it.each([
    ['/files/:name', '/files/a%2fb'],
    ['/:org/settings', '/;x/settings'],
    ['/:a/:b/login', '/a/../login'],
    ['/login', '/login%2f'],
    ['/a/b', '/a%2fb'],
  ])('the rule %s holds for %s, as one server or another would read it', (path, target) => {
    const rules = [ruleOf({ name: 'rule', match: { path }, charge: { policy: 'login' } })]
    expect(resolved({ policies: POLICIES, rules }, { path: target }).levels[0]?.level.rule).toBe('rule')
  })

  it('rules match parameters and open ends by whole segments', () => {
    const config = {
      policies: POLICIES,
      rules: [
        ruleOf({ name: 'post', match: { path: '/users/:id/posts' }, charge: { policy: 'login' } }),
        ruleOf({ name: 'api', match: { path: '/api/*' }, charge: { policy: 'api' } }),
      ],
    }
    const rule = (path: string) => resolved(config, { path }).levels[0]?.level.rule
    expect(rule('/users/42/posts')).toBe('post')
    expect(rule('/users/42/posts/7')).toBe('default')
    expect(rule('/users/posts')).toBe('default')
    expect(rule('/api')).toBe('api')
    expect(rule('/api/a/b')).toBe('api')
    expect(rule('/apis')).toBe('default')
  })

  it('rules for GET hold for HEAD, and a method rule never for a request without a method', () => {
    const rules = [ruleOf({ name: 'read', match: { methods: ['GET'] }, charge: { policy: 'api' } })]
    const rule = (method?: string) =>
      resolved({ policies: POLICIES, rules }, method === undefined ? {} : { method }).levels[0]?.level.rule
    expect([rule('GET'), rule('HEAD'), rule('POST'), rule()]).toEqual(['read', 'read', 'default', 'default'])
  })

  it('rules look at subject type, tier and scope, and are charged to the subject they speak of', () => {
    const rules = [
      ruleOf({ name: 'ips', match: { path: '/login', subjects: ['ip'] }, charge: { policy: 'login' } }),
      ruleOf({ name: 'pros', match: { tiers: ['pro'] }, charge: { policy: 'api' } }),
      ruleOf({ name: 'exports', match: { scopes: ['export'] }, charge: { policy: 'everything' } }),
    ]
    const config = { policies: POLICIES, rules }
    const subjects = ['user:42', 'ip:192.0.2.1']
    expect(asked(config, { subjects, path: '/login' })).toEqual([['ip:192.0.2.1 global login.log-1m 5']])
    expect(asked(config, { subjects: ['user:42'], tier: 'pro' })).toEqual([['user:42 global api.log-1m 100']])
    expect(asked(config, { subjects: ['user:42'], scope: 'export' })).toEqual([
      ['user:42 global everything.log-1m 1000'],
    ])
    expect(resolved(config, { subjects: ['user:42'], path: '/login' }).levels[0]?.level.rule).toBe('default')
  })

  it('rules may share one budget among all callers, and keep it apart by scope', () => {
    const rules = [
      ruleOf({
        match: { path: '/export' },
        charge: { policy: 'login' },
        per: 'everyone',
        scope: 'export',
      }),
    ]
    expect(asked({ policies: POLICIES, rules }, { path: '/export' })).toEqual([
      ['global:~all export login.log-1m 5'],
    ])
  })

  it('rules without a charge leave the caller to its tier', () => {
    const rules = [ruleOf({ name: 'dear', match: { path: '/report' }, cost: 10 })]
    const { cost, levels } = resolved({ rules }, { path: '/report', tier: 'pro' })
    expect(cost).toBe(10)
    expect(levels[0]?.level.configured.policy.tier).toBe('pro')
  })
})

describe('tiers', () => {
  it('tiers come from the file for callers it names, then from the adapter, then from the default', () => {
    const subjects = new Map([['user:42', { tier: 'enterprise' }]])
    const tier = (facts: Facts) => resolved({ subjects }, facts).tier
    expect(tier({ subjects: ['user:42'], tier: 'free' })).toBe('enterprise')
    expect(tier({ subjects: ['user:7'], tier: 'free' })).toBe('free')
    expect(tier({ subjects: ['user:7'] })).toBe('anonymous')
  })

  it('tiers give way to a policy of the caller’s own', () => {
    const subjects = new Map([['user:42', { policy: 'api' }]])
    expect(asked({ policies: POLICIES, subjects }, { subjects: ['user:42'] })).toEqual([
      ['user:42 global api.log-1m 100'],
    ])
  })

  it('a policy of the caller’s own goes before the rules for callers of its type', () => {
    const subjects = new Map([['user:42', { policy: 'api' }]])
    const users = ruleOf({ name: 'users', match: { subjects: ['user'] }, charge: { policy: 'login' } })
    const config = { policies: POLICIES, subjects, rules: [users] }
    expect(asked(config, { subjects: ['user:42'] })).toEqual([['user:42 global api.log-1m 100']])
    expect(asked(config, { subjects: ['user:7'] })).toEqual([['user:7 global login.log-1m 5']])
  })
})

describe('levels', () => {
  const config = {
    policies: POLICIES,
    rules: [LOGIN],
    global: { policy: 'everything' },
    default: { policy: 'api' },
  }
  const facts = { subjects: ['user:42'], method: 'POST', path: '/login' }
  const ROUTE = 'user:42 global login.log-1m 5'
  const CALLER = 'user:42 global api.log-1m 100'
  const GLOBAL = 'global:~all global everything.log-1m 1000'

  it('most-specific lets the first level that has a rule decide', () => {
    expect(asked(config, facts)).toEqual([[ROUTE]])
    expect(asked(config, { ...facts, path: '/' })).toEqual([[CALLER]])
    expect(resolved(config, facts).levels.map(({ part }) => part)).toEqual(['decides', 'unused', 'unused'])
  })

  it('all means that every level must admit, in one question', () => {
    expect(asked({ ...config, levels: 'all' }, facts)).toEqual([[ROUTE, CALLER, GLOBAL]])
  })

  it('first-available has one alternative for each level, from the most specific', () => {
    expect(asked({ ...config, levels: 'first-available' }, facts)).toEqual([[ROUTE], [CALLER], [GLOBAL]])
  })

  it('levels that lead to one budget charge it once', () => {
    const rules = [ruleOf({ match: { path: '/login' }, charge: { policy: 'api' } })]
    expect(asked({ ...config, rules, levels: 'all' }, facts)).toEqual([[CALLER, GLOBAL]])
  })
})

describe('costs', () => {
  it('costs come from the request, the rule, the list, in this order', () => {
    const config = {
      rules: [ruleOf({ match: { path: '/a' }, cost: 7 })],
      costs: [
        { method: 'POST', path: '/api/simulation/start', cost: 10 },
        { method: null, path: '/a', cost: 3 },
      ],
    }
    const cost = (facts: Facts) => resolved(config, facts).cost
    expect(cost({ method: 'POST', path: '/API/simulation/start/' })).toBe(10)
    expect(cost({ method: 'GET', path: '/api/simulation/start' })).toBe(1)
    expect(cost({ path: '/a' })).toBe(7)
    expect(cost({ path: '/a', cost: 0 })).toBe(0)
  })
})

it.each([
  [null, 1],
  [0, 1],
  [3, 3],
])('a path that cannot be read and is asked for at a cost of %o costs %i', (cost, expected) => {
  const facts = { ...OF_A_USER, methods: [null], path: 'too-many' as const, cost }
  const { alternatives } = resolve(inForceOf({}), facts, 0).question
  expect(alternatives.flat().map(check => [check.limit.limit, check.cost])).toEqual([[0, expected]])
})

describe('costs of a rule', () => {
  const rules = [
    ruleOf({ name: 'dear', match: { path: '/a' }, charge: { policy: 'login' }, mode: 'shadow', cost: 4 }),
  ]
  const config = { policies: POLICIES, rules, default: { policy: 'api' } }
  const costs = (facts: Facts, changes: Partial<Config> = {}) => {
    const { cost, question } = resolved({ ...config, ...changes }, facts)
    return [
      cost,
      question.alternatives.flat().map(check => check.cost),
      question.shadow.map(check => check.cost),
    ]
  }

  it('costs of a rule on trial are those of its own limits, not of what decides in its place', () => {
    expect(costs({ path: '/a' })).toEqual([1, [1], [4]])
    expect(costs({ path: '/a' }, { costs: [{ method: null, path: '/a', cost: 2 }] })).toEqual([2, [2], [4]])
    expect(costs({ path: '/a', cost: 3 })).toEqual([3, [3], [3]])
  })

  it('costs of a rule count where everything is on trial', () => {
    expect(costs({ path: '/a' }, { mode: 'shadow' })).toEqual([4, [], [4, 4]])
  })

  it('costs of a rule on a level that is not asked are nobody’s', () => {
    const ofCaller = ruleOf({ name: 'ips', match: { subjects: ['ip'] }, cost: 9 })
    const changes = { rules: [LOGIN, ofCaller] }
    expect(costs({ method: 'POST', path: '/login' }, changes)).toEqual([1, [1], []])
    expect(costs({ method: 'POST', path: '/login' }, { ...changes, levels: 'all' })[0]).toBe(9)
  })
})

describe('what is skipped', () => {
  const skip = { prefixes: ['/_next'], extensions: ['css'] }
  const bypass = (facts: Facts, config: Partial<Config> = {}) => resolved({ skip, ...config }, facts).bypass

  it('skipped paths are named by whole segments and by the extension of a file that is read', () => {
    expect(bypass({ method: 'GET', path: '/_next/static/a.js' })).toBe('skipped')
    expect(bypass({ method: 'GET', path: '/site.CSS?v=1' })).toBe('skipped')
    expect(bypass({ method: 'GET', path: '/_nextgen' })).toBeNull()
    expect(bypass({ method: 'POST', path: '/site.css' })).toBeNull()
    expect(bypass({ method: 'GET', path: '/v1.2/users' })).toBeNull()
    expect(bypass({ method: 'GET', path: '/.css' })).toBeNull()
    // A server that does not resolve dots sees something else, so it is limited.
    expect(bypass({ method: 'GET', path: '/users/../_next/x' })).toBeNull()
    expect(bypass({ method: 'GET', path: '/users/1;.css' })).toBeNull()
    expect(bypass({ method: 'GET', path: '/users%2fa.css' })).toBe('skipped')
    expect(bypass({ method: 'GET', path: '/_next/../users' })).toBeNull()
  })

  it('a request that a rule names by its path is never skipped', () => {
    const rules = [ruleOf({ match: { path: '/users/:id' }, charge: { policy: 'api' } })]
    expect(bypass({ method: 'GET', path: '/users/1.css' }, { policies: POLICIES, rules })).toBeNull()
  })

  it('a skipped request stays so beside a rule that names only a method', () => {
    const rules = [ruleOf({ match: { methods: ['GET'] }, charge: { policy: 'api' } })]
    expect(bypass({ method: 'GET', path: '/site.css' }, { policies: POLICIES, rules })).toBe('skipped')
  })

  it('a skipped request is only watched by a rule on trial: no other level comes to decide it', () => {
    const rules = [ruleOf({ match: { path: '/users/:id' }, charge: { policy: 'api' }, mode: 'shadow' })]
    const { question } = resolved(
      { skip, policies: POLICIES, rules },
      { method: 'GET', path: '/users/1.css' },
    )
    expect(question.alternatives.flat()).toEqual([])
    expect(question.shadow.map(({ name }) => name)).toEqual(['api.log-1m'])
  })
})

describe('shadow', () => {
  const shadowLogin = { ...LOGIN, mode: 'shadow' as const }
  const facts = { subjects: ['user:42'], method: 'POST', path: '/login' }

  it('a rule in shadow steps aside: the next level decides as if the rule were not there', () => {
    const config = { policies: POLICIES, rules: [shadowLogin], default: { policy: 'api' } }
    const { question } = resolved(config, facts)
    expect(question.alternatives.flat().map(({ name }) => name)).toEqual(['api.log-1m'])
    expect(question.shadow.map(({ name }) => name)).toEqual(['login.log-1m'])
  })

  it('shadow of a policy and of the whole file is overruled by what is more specific', () => {
    const mode = (config: Partial<Config>) => resolved(config, facts).levels[0]?.level.mode
    const policies = { ...POLICIES, login: { ...POLICIES.login, mode: 'shadow' as const } }
    expect(mode({ policies, rules: [LOGIN] })).toBe('shadow')
    expect(mode({ policies, rules: [{ ...LOGIN, mode: 'enforce' }] })).toBe('enforce')
    expect(mode({ policies: POLICIES, rules: [LOGIN], mode: 'shadow' })).toBe('shadow')
    expect(mode({ policies: POLICIES, rules: [{ ...LOGIN, enforcePercent: 100 }], mode: 'shadow' })).toBe(
      'enforce',
    )
  })

  it('shadow by percentage takes about that share of subjects, always the same, and more as it grows', () => {
    const names = Array.from({ length: 4_000 }, (_, index) => `user:${index}`)
    const enforced = (enforcePercent: number) => {
      const active = inForceOf({ policies: POLICIES, default: { policy: 'api' }, enforcePercent })
      const facts = { methods: [null], path: null, tier: null, scope: null, cost: null }
      return names.filter(
        subject => resolve(active, { ...facts, subjects: [subject] }, 0).levels[0]?.part === 'decides',
      )
    }
    const [none, quarter, half, all] = [enforced(0), enforced(25), enforced(50), enforced(100)]
    expect(none).toEqual([])
    expect(all).toEqual(names)
    expect(quarter.length / names.length).toBeCloseTo(0.25, 1)
    expect(quarter).toEqual(enforced(25))
    expect(half).toEqual(expect.arrayContaining(quarter))
  })

  it('shadow by percentage of a budget that all share goes by who asks', () => {
    const names = Array.from({ length: 1_000 }, (_, index) => `user:${index}`)
    const share = (config: Partial<Config>) => {
      const all = names.map(name =>
        resolved({ policies: POLICIES, ...config }, { subjects: [name], path: '/a' }),
      )
      return all.filter(({ question }) => JSON.stringify(question.alternatives).includes('global:~all'))
        .length
    }
    const rule = { match: { path: '/a' }, charge: { policy: 'login' }, per: 'everyone' as const }
    expect(share({ rules: [ruleOf({ ...rule, enforcePercent: 25 })] }) / 1_000).toBeCloseTo(0.25, 1)
    const global = { policy: 'everything', enforcePercent: 25 }
    expect(share({ levels: 'all', global }) / 1_000).toBeCloseTo(0.25, 1)
  })

  it('shadow carries candidates beside the live limits, under names of their own', () => {
    const policies = { api: { ...perMinute(100), candidate: perMinute(50).limits } }
    const { question } = resolved({ policies, default: { policy: 'api' } }, facts)
    expect(question.alternatives[0]?.map(({ name }) => name)).toEqual(['api.log-1m'])
    expect(question.shadow.map(({ name, limit }) => [name, limit.limit])).toEqual([
      ['api+candidate.log-1m', 50],
    ])
  })

  it('candidates of a level that is not asked are not asked either', () => {
    const policies = { ...POLICIES, api: { ...perMinute(100), candidate: perMinute(50).limits } }
    const { question } = resolved({ policies, rules: [LOGIN], default: { policy: 'api' } }, facts)
    expect(question.alternatives[0]?.map(({ name }) => name.split('.')[0])).toEqual(['login'])
    expect(question.shadow).toEqual([])
  })
})

describe('control', () => {
  it('control that is off or paused asks nothing', () => {
    expect(resolved({}, {}, { control: { enabled: false, multiplier: 1 } }).bypass).toBe('disabled')
    expect(resolved({}, {}, { control: { enabled: true, multiplier: 0 } }).bypass).toBe('paused')
    expect(resolved({}, {}, { control: { enabled: true, multiplier: 0 } }).question.alternatives).toEqual([
      [],
    ])
  })

  it.each([
    [1.5, 7],
    [0.1, 1],
    [1_000, 5_000],
  ])('a multiplier of %d makes 5 a minute %d', (multiplier, limit) => {
    const control = { enabled: true, multiplier }
    expect(asked({ policies: POLICIES, default: { policy: 'login' } }, {}, { control })[0]?.[0]).toMatch(
      new RegExp(` ${limit}$`),
    )
  })

  it('a multiplier scales every number of a tier, and what headers tell of it', () => {
    const { question } = resolved({}, { tier: 'pro' }, { control: { enabled: true, multiplier: 2 } })
    expect(
      question.alternatives[0]?.map(({ limit }) => [limit.limit, limit.quota.limit, limit.quota.burst]),
    ).toEqual([
      [600, 200, 600],
      [600, 200, 600],
      [4_000, 4_000, null],
      [100_000, 100_000, null],
    ])
    const bucket = question.alternatives[0]?.[1]?.limit
    expect(bucket).toMatchObject({ algorithm: { name: 'token-bucket' }, refillPerSecond: 200 / 60 })
  })

  it('a multiplier leaves a ban a ban', () => {
    const policies = { none: perMinute(0) }
    const control = { enabled: true, multiplier: 10 }
    expect(asked({ policies, default: { policy: 'none' } }, {}, { control })[0]?.[0]).toMatch(/ 0$/)
  })
})

describe('overrides', () => {
  const by = { by: 'ada', reason: 'launch', setAt: 0, expiresAt: 1 }

  it('overrides give a subject another tier on its own level, not on the route’s', () => {
    const overrides = [{ subject: 'user:42', tier: 'enterprise', ...by }]
    const config = { policies: POLICIES, rules: [LOGIN] }
    expect(resolved(config, { subjects: ['user:42'], tier: 'free' }, { overrides }).tier).toBe('enterprise')
    expect(resolved(config, { subjects: ['user:7'], tier: 'free' }, { overrides }).tier).toBe('free')
    const login = { subjects: ['user:42'], method: 'POST', path: '/login' }
    expect(asked(config, login, { overrides })).toEqual([['user:42 global login.log-1m 5']])
  })

  it('overrides replace the numbers they name, and keep the burst, the hour and the day of the tier', () => {
    const overrides = [{ subject: 'user:42', numbers: { minute: 7 }, ...by }]
    expect(asked({}, { subjects: ['user:42'] }, { overrides })).toEqual([
      [
        'user:42 global tier.log-1m 14',
        'user:42 global tier.bucket 14',
        'user:42 global tier.counter-1h 100',
        'user:42 global tier.counter-1d 1000',
      ],
    ])
    const lifted = [
      { subject: 'user:42', numbers: { minute: 7, burst: 1, hour: 9, day: 'unlimited' as const }, ...by },
    ]
    expect(asked({}, { subjects: ['user:42'] }, { overrides: lifted })).toEqual([
      ['user:42 global tier.log-1m 7', 'user:42 global tier.counter-1h 9'],
    ])
  })

  it('overrides put the numbers of a policy other than a tier into its own limits', () => {
    const overrides = [{ rule: 'login', numbers: { minute: 7, hour: 20 }, ...by }]
    const config = { policies: POLICIES, rules: [LOGIN] }
    expect(asked(config, { method: 'POST', path: '/login', subjects: ['user:1'] }, { overrides })).toEqual([
      ['user:1 global login.log-1m 7', 'user:1 global login.counter-1h 20'],
    ])
  })

  it('overrides of a subject and a rule change that rule for that subject alone', () => {
    const overrides = [
      { subject: 'user:42', rule: 'login', limits: { 'log-1m': 50 }, ...by },
      { rule: 'login', limits: { 'log-1m': 6 }, ...by },
    ]
    const config = { policies: POLICIES, rules: [LOGIN], default: { policy: 'api' } }
    const limitOf = (subjects: string[], path: string) =>
      asked(config, { method: 'POST', path, subjects }, { overrides })[0]?.[0]
    expect(limitOf(['user:42'], '/login')).toBe('user:42 global login.log-1m 50')
    expect(limitOf(['user:7'], '/login')).toBe('user:7 global login.log-1m 6')
    expect(limitOf(['user:42'], '/other')).toBe('user:42 global api.log-1m 100')
  })

  it('overrides of a subject hold on a rule that leaves it to its tier', () => {
    const overrides = [{ subject: 'user:42', numbers: { minute: 7, burst: 1 }, ...by }]
    const dear = ruleOf({ name: 'dear', match: { path: '/dear' }, cost: 2 })
    const facts = { subjects: ['user:42'], path: '/dear' }
    expect(asked({ rules: [dear] }, facts, { overrides })[0]?.[0]).toBe('user:42 global tier.log-1m 7')
  })

  it('overrides give a rule other numbers, scaled like all others', () => {
    const overrides = [{ rule: 'login', limits: { 'log-1m': 50 }, ...by }]
    const config = { policies: POLICIES, rules: [LOGIN] }
    const facts = { method: 'POST', path: '/login' }
    const control = { enabled: true, multiplier: 2 }
    expect(asked(config, facts, { overrides })[0]?.[0]).toMatch(/login.log-1m 50$/)
    expect(asked(config, facts, { overrides, control })[0]?.[0]).toMatch(/login.log-1m 100$/)
  })

  it('overrides of a rule end when they end, though nothing else has changed', () => {
    const override = { rule: 'login', limits: { 'log-1m': 50 }, ...by }
    const active = inForceOf({ policies: POLICIES, rules: [LOGIN] }, NORMAL, [{ override, endsAtUs: 10 }])
    const facts = { methods: ['POST'], path: pathReadings('/login') ?? [], ...OF_A_USER }
    const limitAt = (nowUs: number) =>
      resolve(active, facts, nowUs).question.alternatives[0]?.[0]?.limit.limit
    expect([limitAt(0), limitAt(9), limitAt(10)]).toEqual([50, 50, 5])
  })

  it('overrides of two callers whom one rule speaks of stay each caller’s own', () => {
    const users = ruleOf({ name: 'users', match: { subjects: ['user'] }, charge: { policy: 'api' } })
    const overrides = [7, 8].map(limit => ({
      override: { subject: `user:${limit}`, limits: { 'log-1m': limit }, ...by },
      endsAtUs: 10,
    }))
    const active = inForceOf({ policies: POLICIES, rules: [users] }, NORMAL, overrides)
    const limitOf = (subject: string) => {
      const facts = { ...OF_A_USER, subjects: [subject], methods: [null], path: null }
      return resolve(active, facts, 0).question.alternatives[0]?.[0]?.limit.limit
    }
    expect(['user:7', 'user:8', 'user:9', 'user:7'].map(limitOf)).toEqual([7, 8, 100, 7])
  })

  it('overrides that have ended, or name a tier that is gone, change nothing', () => {
    const active = (override: Override, endsAtUs: number) =>
      resolve(
        inForceOf({}, NORMAL, [{ override, endsAtUs }]),
        { methods: [null], path: null, ...OF_A_USER },
        10,
      ).tier
    expect(active({ subject: 'user:42', tier: 'pro', ...by }, 10)).toBe('anonymous')
    expect(active({ subject: 'user:42', tier: 'pro', ...by }, 11)).toBe('pro')
    expect(active({ subject: 'user:42', tier: 'gone', ...by }, 11)).toBe('anonymous')
    const subjects = new Map([['user:42', { policy: 'api' }]])
    const overrides = [{ subject: 'user:42', tier: 'gone', ...by }]
    expect(asked({ policies: POLICIES, subjects }, { subjects: ['user:42'] }, { overrides })).toEqual([
      ['user:42 global api.log-1m 100'],
    ])
  })
})

describe('leases', () => {
  const policies = {
    api: {
      limits: [tokenBucket({ capacity: 1_000, refillPerSecond: 100 })],
      lease: { max: 50, ttl: '400ms' },
    },
  } as const
  const config = { policies, default: { policy: 'api' } }
  const limitOf = (extra?: Parameters<typeof resolved>[2]) =>
    resolved(config, { subjects: ['user:42'] }, extra).question.alternatives[0]?.[0]?.limit

  it('leases are of the numbers in force: those of the file, scaled or overridden', () => {
    expect(limitOf()).toMatchObject({ limit: 960, lease: { max: 50, ttlUs: 400_000 } })
    expect(limitOf({ control: { enabled: true, multiplier: 2 } })).toMatchObject({
      limit: 1_920,
      refillPerSecond: 200,
      lease: { max: 50 },
    })
    const override = {
      subject: 'user:42',
      limits: { bucket: 20 },
      by: 'ada',
      reason: 'x',
      setAt: 0,
      expiresAt: 1,
    }
    expect(limitOf({ overrides: [override] })).toMatchObject({ limit: 19, lease: { max: 20 } })
    expect(limitOf({ overrides: [{ ...override, limits: { bucket: 0 } }] })?.lease).toBeUndefined()
  })
})

describe('a request that claims another method', () => {
  const READ = ruleOf({
    name: 'read',
    match: { methods: ['GET'], path: '/login' },
    charge: { policy: 'everything' },
  })
  const config = { policies: POLICIES, default: { policy: 'api' } }
  const names = (rules: RuleConfig[], facts: Facts, levels: Config['levels'] = 'most-specific') =>
    asked({ ...config, rules, levels }, { path: '/login', ...facts }).map(checks =>
      checks.map(check => check.split(' ')[2]),
    )

  it('a request that claims another method is held to the rules of both', () => {
    expect(names([READ, LOGIN], { method: 'POST', claimedMethods: ['GET'] })).toEqual([
      ['login.log-1m', 'everything.log-1m'],
    ])
    expect(names([READ, LOGIN], { method: 'GET', claimedMethods: ['POST'] })).toEqual([
      ['everything.log-1m', 'login.log-1m'],
    ])
  })

  it('a claim cannot take the way of one method past what holds for the other', () => {
    expect(names([LOGIN], { method: 'GET', claimedMethods: ['POST'] })).toEqual([
      ['login.log-1m', 'api.log-1m'],
    ])
    expect(names([LOGIN], { method: 'POST', claimedMethods: ['GET'] })).toEqual([
      ['login.log-1m', 'api.log-1m'],
    ])
    expect(names([READ, LOGIN], { method: 'POST', claimedMethods: ['GET'] }, 'first-available')).toEqual([
      ['login.log-1m', 'everything.log-1m'],
      ['api.log-1m'],
    ])
  })

  it('a claim is one request where both methods lead to one rule, and is not skipped as a file that is read', () => {
    expect(names([LOGIN], { method: 'POST', claimedMethods: ['POST'] })).toEqual([['login.log-1m']])
    const skip = { prefixes: [], extensions: ['css'] }
    expect(
      resolved({ skip }, { method: 'GET', claimedMethods: ['DELETE'], path: '/a.css' }).bypass,
    ).toBeNull()
  })

  it('a request that claims another method costs the higher of the two', () => {
    const costs = [{ method: 'DELETE', path: '/a', cost: 7 }]
    expect(resolved({ costs }, { method: 'POST', claimedMethods: ['DELETE'], path: '/a' }).cost).toBe(7)
    expect(resolved({ costs }, { method: 'DELETE', claimedMethods: ['POST'], path: '/a' }).cost).toBe(7)
  })

  it.each([
    [{ 'x-http-method-override': 'delete' }, '/a', ['DELETE']],
    [{ 'x-http-method': ' PUT ' }, '/a', ['PUT']],
    [{ 'x-method-override': 'PATCH' }, '/a', ['PATCH']],
    [{ 'x-http-method-override': 'DELETE, x' }, '/a', ['DELETE', 'X']],
    [{ 'x-http-method-override': 'x,DELETE,,x' }, '/a', ['X', 'DELETE']],
    [{ 'x-http-method-override': 'GET', 'x-method-override': 'DELETE' }, '/a', ['GET', 'DELETE']],
    [{ 'x-http-method': 'PUT' }, '/a?_method=DELETE', ['PUT', 'DELETE']],
    [{}, '/a?x=1&_method=put', ['PUT']],
    [{}, '/a?_method=GET&_method=DELETE', ['GET', 'DELETE']],
    [{}, '/a?_method[]=DELETE&_method[1]=PUT', ['DELETE', 'PUT']],
    [{}, '/a?%5Fmethod=%64elete', ['DELETE']],
    [{}, '/a;_method=PUT', ['PUT']],
    [{}, '/a?_method=%zz', ['%ZZ']],
    [{}, '/a?_method=', []],
    [{}, '/a?x_method=PUT', []],
    [{}, '/a', []],
  ])('a request claims another method by %j or %s', (headers: Record<string, string>, target, methods) => {
    expect(claimedMethods(name => headers[name], target)).toEqual(methods)
  })

  it('a request claims another method by every line of a header', () => {
    expect(claimedMethods(name => (name === 'x-http-method' ? ['put', 'x, delete'] : []), '/a')).toEqual([
      'PUT',
      'X',
      'DELETE',
    ])
  })

  it('a request is held to each of several claims, and to no more for a thousand that no rule names', () => {
    const claims = Array.from({ length: 1_000 }, (_, index) => `X${index}`)
    const facts = { method: 'GET', claimedMethods: [...claims, 'POST'] }
    expect(names([READ, LOGIN], facts)).toEqual([['everything.log-1m', 'login.log-1m', 'api.log-1m']])
  })
})
