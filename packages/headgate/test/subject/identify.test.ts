/** Tests how sources find the subject of a request. */
import { describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { parseConfig } from '../../src/config.js'
import { rateLimit } from '../../src/fetch.js'
import {
  apiKey,
  createIdentify,
  custom,
  fingerprint,
  type HttpRequest,
  type Identity,
  identifyByConfig,
  internal,
  ip,
  type SubjectSource,
  session,
  tenant,
  user,
} from '../../src/identify.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import { defaultTiers, tier } from '../../src/policy/tiers.js'
import { keepLines } from '../support/kept-lines.ts'
import { configOf, perMinute, ruleOf } from '../support/rule-config.ts'

interface Plain {
  readonly peer?: string
  readonly headers?: Readonly<Record<string, string>>
}

function requestOf({ peer = '203.0.113.9', headers = {} }: Plain = {}): HttpRequest {
  return { method: 'GET', url: '/', peer, route: undefined, header: name => headers[name] }
}

const found = (sources: SubjectSource[], request: Plain = {}): Identity =>
  createIdentify({ sources })(requestOf(request)) as Identity
const KEYS = new Map([['sk_1', { tier: 'pro' }]])
const OWN = ['10.0.0.0/8']

describe('sources', () => {
  it('sources are tried in their order, and whoever they find are the subjects, the first the most specific', () => {
    const sources = [
      internal({ header: 'x-service', from: OWN, tier: 'internal' }),
      apiKey({ lookUp: key => KEYS.get(key) }),
      user({ header: 'x-user', from: OWN }),
      session({ cookie: 'sid', unverified: true }),
      tenant({ header: 'x-tenant', from: OWN }),
      ip(),
    ]
    const everything = {
      'x-service': 'billing',
      'x-api-key': 'sk_1',
      'x-user': '42',
      'x-tenant': 'acme',
      cookie: 'a=b; sid=s1',
    }
    expect(found(sources, { peer: '10.0.0.7', headers: everything })).toEqual({
      subjects: [
        { type: 'internal', id: 'billing' },
        'apikey:sk_1',
        { type: 'user', id: '42' },
        'session:s1',
        { type: 'tenant', id: 'acme' },
        'ip:10.0.0.7',
      ],
      tier: 'internal',
      perAddress: { address: 'ip:10.0.0.7', minted: [{ subject: 'session:s1', times: 10 }] },
    })
    // The same from a stranger: claims that only our proxies may make are not believed.
    expect(found(sources, { headers: everything })).toEqual({
      subjects: ['apikey:sk_1', 'session:s1', 'ip:203.0.113.9'],
      tier: 'pro',
      perAddress: { address: 'ip:203.0.113.9', minted: [{ subject: 'session:s1', times: 10 }] },
    })
    expect(found(sources)).toEqual({ subjects: ['ip:203.0.113.9'], tier: undefined })
  })

  it('sources find nobody by a key that nobody knows', () => {
    const source = apiKey({ header: 'Authorization', scheme: 'Bearer', lookUp: key => KEYS.get(key) })
    const by = (authorization: string) => found([source], { headers: { authorization } }).subjects
    expect(by('Bearer sk_1')).toEqual(['apikey:sk_1'])
    expect(by('bearer  sk_1')).toEqual(['apikey:sk_1'])
    for (const other of ['Bearer sk_2', 'sk_1', 'Basic sk_1', 'Bearer sk_2, Bearer sk_3', 'Bearer ']) {
      expect(by(other)).toEqual(['ip:203.0.113.9'])
    }
  })

  it('sources say whom a key belongs to, where the look-up knows', async () => {
    const source = apiKey({ lookUp: async () => ({ subject: ['user:42', 'tenant:acme'], tier: 'pro' }) })
    const identity = await createIdentify({ sources: [source] })(requestOf({ headers: { 'x-api-key': 'k' } }))
    expect(identity).toEqual({ subjects: ['user:42', 'tenant:acme'], tier: 'pro' })
  })

  it('sources believe a header only once, and a cookie only once', () => {
    const named = user({ header: 'x-user', from: OWN })
    expect(found([named], { peer: '10.0.0.1', headers: { 'x-user': '1, 2' } }).subjects).toEqual([
      'ip:10.0.0.1',
    ])
    const cookies = session({ cookie: 'sid', unverified: true })
    expect(found([cookies], { headers: { cookie: 'sid=a; sid=b' } }).subjects).toEqual(['ip:203.0.113.9'])
    expect(found([cookies], { headers: { cookie: 'xsid=a; sid="b"' } }).subjects).toEqual(['session:b'])
    expect(found([cookies], { headers: { cookie: 'sid=a b' } }).subjects).toEqual(['ip:203.0.113.9'])
    expect(found([cookies], { headers: { cookie: 'sid=a%2C%20b' } }).subjects).toEqual(['session:a, b'])
  })

  it('sources know a secret whatever is sent beside it, where it can be looked up', async () => {
    const lookUp = (secret: string) => (secret === 'real' ? {} : null)
    const key = apiKey({ lookUp: async secret => lookUp(secret) })
    const bearer = apiKey({ header: 'authorization', scheme: 'Bearer', lookUp })
    const sid = session({ cookie: 'sid', lookUp })
    const subjectsOf = async (source: SubjectSource, headers: Record<string, string>) =>
      (await createIdentify({ sources: [source] })(requestOf({ headers }))).subjects
    for (const value of ['real', 'real, x', 'x, real', 'real,'])
      expect(await subjectsOf(key, { 'x-api-key': value })).toEqual(['apikey:real'])
    for (const value of ['Bearer\treal', 'bearer real x', 'Bearer real, Bearer x', 'Basic x, Bearer real'])
      expect(await subjectsOf(bearer, { authorization: value })).toEqual(['apikey:real'])
    for (const value of ['sid=real; sid=x', 'sid=x; sid=real', 'sid=%72eal'])
      expect(await subjectsOf(sid, { cookie: value })).toEqual(['session:real'])
    expect(await subjectsOf(key, { 'x-api-key': 'x, y' })).toEqual(['ip:203.0.113.9'])
    expect(await subjectsOf(bearer, { authorization: 'real' })).toEqual(['ip:203.0.113.9'])
  })

  it('unidentified callers are their addresses, as trusted proxies tell them; without one they share a budget', () => {
    const sources = [user({ header: 'x-user', from: OWN })]
    expect(found(sources, { peer: '198.51.100.1' }).subjects).toEqual(['ip:198.51.100.1'])
    const gone: HttpRequest = { ...requestOf(), peer: undefined }
    expect(createIdentify({ sources })(gone)).toMatchObject({ subjects: ['anonymous:unknown'] })
    const behind = requestOf({ peer: '10.0.0.1', headers: { 'x-forwarded-for': '198.51.100.7' } })
    const address = ip({ trustedProxies: OWN })
    expect(createIdentify({ sources, address })(behind)).toMatchObject({ subjects: ['ip:198.51.100.7'] })
    const file = configOf({
      identify: [{ source: 'user', header: 'x-user', from: OWN }],
      trustedProxies: OWN,
    })
    expect(identifyByConfig(file)(behind)).toMatchObject({ subjects: ['ip:198.51.100.7'] })
  })

  it('sources tell apart callers behind one address by a fingerprint that shows nothing of them', () => {
    const by = (agent: string, peer = '203.0.113.9') =>
      found([fingerprint()], { peer, headers: { 'user-agent': agent } }).subjects[0]
    expect(by('a')).toMatch(/^fingerprint:[0-9a-f]{32}$/)
    expect(by('a')).toBe(by('a'))
    expect(by('a')).not.toBe(by('b'))
    expect(by('a')).not.toBe(by('a', '203.0.113.10'))
    expect(by('a', '2001:db8::1')).toBe(by('a', '2001:db8::2'))
  })

  it('sources read the address from trusted proxies, by the header they write', () => {
    const source = ip({ trustedProxies: OWN, forwardedHeader: 'forwarded' })
    const headers = { forwarded: 'for=198.51.100.7', 'x-forwarded-for': '6.6.6.6' }
    expect(found([source], { peer: '10.0.0.1', headers }).subjects).toEqual(['ip:198.51.100.7'])
    const gone: HttpRequest = { ...requestOf(), peer: undefined }
    expect(createIdentify({ sources: [ip()] })(gone)).toMatchObject({ subjects: ['anonymous:unknown'] })
  })

  it('sources may be functions of your own, and a look-up may know the tier', async () => {
    const identify = createIdentify({
      sources: [custom(() => ({ subject: 'user:42' })), custom(async () => null), ip()],
      tierOf: async subject => (subject === 'user:42' ? 'pro' : null),
    })
    expect(await identify(requestOf())).toEqual({ subjects: ['user:42', 'ip:203.0.113.9'], tier: 'pro' })
  })

  it.each<[string, () => unknown, string]>([
    ['no sources', () => createIdentify({ sources: [] }), 'sources: expected a list of at least one source'],
    ['a key nobody checks', () => apiKey({}), 'apikey: expected either a lookUp, or unverified: true'],
    ['both', () => apiKey({ lookUp: () => null, unverified: true }), 'apikey: expected either a lookUp'],
    ['a session nobody checks', () => session({ cookie: 'sid' }), 'session: expected either a lookUp'],
    [
      'a bad cookie',
      () => session({ cookie: 'a b', unverified: true }),
      'cookie: expected the name of a cookie',
    ],
    [
      'a bad header',
      () => apiKey({ header: 'x y', unverified: true }),
      'header: expected the name of a header',
    ],
    ['nobody to believe', () => user({ header: 'x-user', from: [] }), 'from: expected at least one address'],
    ['from left out', () => user({ header: 'x-user' } as never), 'from: expected a list of addresses'],
    [
      'strangers',
      () => user({ header: 'x-user', from: ['::/0'] }),
      'expected a network without ::ffff:0:0/96',
    ],
  ])('sources reject %s at the start', (_name, make, message) => {
    expect(make).toThrow(message)
  })
})

it('a file that does not say who is asking finds the keys it names, and otherwise the address', async () => {
  const { subjects } = await parseConfig(
    'tiers: default\nsubjects: { "apikey:sk_1": { tier: pro } }',
    'file.yaml',
  )
  const identify = identifyByConfig(configOf({ subjects }))
  const found = (key: string) => identify(requestOf({ headers: { 'x-api-key': key } }))
  expect(found('sk_1')).toMatchObject({ subjects: ['apikey:sk_1', 'ip:203.0.113.9'] })
  expect(found('made-up')).toMatchObject({ subjects: ['ip:203.0.113.9'] })
})

describe('a source that names nobody', () => {
  const boom = new Error('boom')
  const failing: readonly [string, SubjectSource][] = [
    [
      'throws',
      custom(() => {
        throw boom
      }),
    ],
    ['rejects', custom(() => Promise.reject(boom))],
    ['never settles', custom(() => new Promise(() => {}))],
    ['cannot look up a key', apiKey({ header: 'host', lookUp: async () => Promise.reject(boom) })],
  ]
  const nameless: readonly [string, SubjectSource][] = [
    ['returns a number', custom(() => 42 as never)],
    ['returns no subject', custom(() => ({ subject: 'nobody' as never }))],
    ['returns an empty id', custom(() => ({ subject: 'user:' }))],
    ['returns a blank id', custom(async () => ({ subject: { type: 'user', id: ' ' } }))],
    ['returns undefined in a text', custom(() => ({ subject: 'user:undefined' }))],
    ['returns a bad list', custom(() => ({ subject: [null as never, 'user:null'] }))],
  ]
  const gateWith = (onStoreFailure: 'closed' | 'open') =>
    createLimiter({
      config: configOf({
        policies: { api: perMinute(1), login: perMinute(1) },
        default: { policy: 'api' },
        rules: [
          ruleOf({ name: 'login', match: { path: '/login' }, charge: { policy: 'login' }, onStoreFailure }),
        ],
      }),
    })
  /** Asks twice, with a limit of one. */
  async function ask(source: SubjectSource, mode: 'closed' | 'open') {
    const told: unknown[] = []
    const { logger, fields } = keepLines()
    const ruled = gateWith(mode)
    const limited = rateLimit({
      limiter: ruled,
      identify: createIdentify({ sources: [source, ip()] }),
      lookupTimeoutMs: 20,
      logger,
      onError: error => told.push(error),
    })(() => new Response('ok'))
    const one = async () => (await limited(new Request('http://a/login', { headers: { host: 'a' } }))).status
    return { statuses: [await one(), await one()], told, faults: ruled.counts().faults, fields }
  }

  it.each(failing)(
    'a source that %s leaves the caller to the next, and is told; closed rejects',
    async (_, source) => {
      const open = await ask(source, 'open')
      expect(open).toMatchObject({ statuses: [200, 429], faults: 0 })
      expect(open.told).toHaveLength(2)
      const closed = await ask(source, 'closed')
      expect(closed).toMatchObject({ statuses: [503, 503], faults: 2 })
      expect(closed.told).toHaveLength(2)
    },
  )

  it.each(nameless)(
    'a source that %s leaves the caller to the next, and is warned of once',
    async (_, source) => {
      for (const mode of ['open', 'closed'] as const) {
        const { statuses, told, fields } = await ask(source, mode)
        expect([statuses, told]).toEqual([[200, 429], []])
        expect(fields).toEqual([{ code: 'WARN_HEADGATE_NAMES_NOBODY' }, { code: 'WARN_HEADGATE_NO_ADDRESS' }])
      }
    },
  )

  it('a source that knows one of two subjects keeps it, and a bad tier is none', () => {
    const list = custom(() => ({ subject: ['user:1', null as never] }))
    const tier = custom(() => ({ subject: 'tenant:1', tier: 5 as never }))
    expect(found([list, tier])).toMatchObject({ subjects: ['user:1', 'tenant:1'], tier: undefined })
  })

  it('a source that hangs does not lose what the others know, nor does a tier that cannot be looked up', async () => {
    const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 1, window: '1m' }) } })
    const identify = createIdentify({
      sources: [custom(() => new Promise(() => {})), custom(async () => ({ subject: 'user:42' }))],
      tierOf: () => Promise.reject(boom),
    })
    const told: unknown[] = []
    const onError = (error: unknown) => told.push(error)
    const limited = rateLimit({ limiter, policy: 'api', identify, lookupTimeoutMs: 20, onError })
    expect((await limited(() => new Response('ok'))(new Request('http://a/'))).status).toBe(200)
    expect((await limiter.peek('user:42', { policy: 'api' })).remaining).toBe(0)
    expect(told).toEqual([expect.objectContaining({ code: 'ERR_HEADGATE_LOOKUP_TIMEOUT' })])
  })

  it('a source that fails leaves no failure behind when another one throws', async () => {
    const unhandled: unknown[] = []
    const note = (error: unknown) => void unhandled.push(error)
    process.on('unhandledRejection', note)
    const sources = failing.map(([, source]) => source).filter((_, index) => index !== 2)
    expect(await createIdentify({ sources: [...sources.toReversed(), ...sources] })(requestOf())).toEqual({
      subjects: ['ip:203.0.113.9'],
      tier: undefined,
      failure: { error: boom },
    })
    await new Promise(resolve => setImmediate(resolve))
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
  })
})

describe('an adapter', () => {
  const identify = createIdentify({ sources: [apiKey({ lookUp: key => KEYS.get(key) }), ip()] })
  const statuses = async (limited: (request: Request) => Promise<Response>, keys: (string | null)[]) => {
    const all: number[] = []
    for (const key of keys) {
      const headers: Record<string, string> = key === null ? {} : { 'x-api-key': key }
      all.push((await limited(new Request('http://a/', { headers }))).status)
    }
    return all
  }

  it('an adapter charges whom the sources find, and made-up keys to those without one', async () => {
    const ruled = createLimiter({
      config: configOf({ policies: { api: perMinute(2) }, default: { policy: 'api' } }),
    })
    const known = apiKey({ lookUp: key => (KEYS.has(key) ? {} : null) })
    const limited = rateLimit({ limiter: ruled, identify: createIdentify({ sources: [known, ip()] }) })(
      () => new Response('ok'),
    )
    expect(await statuses(limited, ['sk_1', 'sk_1', 'sk_1'])).toEqual([200, 200, 429])
    expect(await statuses(limited, [null, 'made up', 'another'])).toEqual([200, 200, 429])
  })

  it('an adapter takes the tier that was found, and its own for the others', async () => {
    const limiter = createLimiter({
      tiers: { ...defaultTiers, pro: tier({ minute: 3 }), anonymous: tier({ minute: 1 }) },
    })
    const limited = rateLimit({ limiter, tier: 'anonymous', identify })(() => new Response('ok'))
    expect(await statuses(limited, ['sk_1', 'sk_1', 'sk_1', 'sk_1'])).toEqual([200, 200, 200, 429])
    expect(await statuses(limited, [null, null])).toEqual([200, 429])
  })

  it('an adapter rejects a subject beside sources', () => {
    const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 1, window: '1m' }) } })
    const make = (more: object) => () => rateLimit({ limiter, policy: 'api', identify, ...more } as never)
    expect(make({ subject: () => 'user:1' })).toThrow('subject: expected none beside identify')
    expect(make({ identify: 'ip' })).toThrow('identify: expected what createIdentify() returns')
  })
})
