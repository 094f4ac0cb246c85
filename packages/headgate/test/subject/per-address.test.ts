/** Sources whose callers anybody can make up, and the address that is charged with them. */
import { describe, expect, it } from 'vitest'
import { createEnforce, type Framework } from '../../src/adapters/enforce.js'
import type { AnyOptions } from '../../src/adapters/options.js'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { parseConfig } from '../../src/config.js'
import { rateLimit as limitFetch } from '../../src/fetch.js'
import {
  apiKey,
  createIdentify,
  custom,
  fingerprint,
  type HttpRequest,
  identifyByConfig,
  internal,
  ip,
  type SubjectSource,
  session,
  tenant,
  user,
} from '../../src/identify.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import { tier } from '../../src/policy/tiers.js'
import { keepLines } from '../support/kept-lines.ts'

interface Plain {
  readonly peer?: string | undefined
  readonly url?: string
  readonly headers?: Readonly<Record<string, string>>
}

const plain: Framework<Plain> = {
  knowsPeer: true,
  read: ({ peer, url = '/', headers = {} }) => ({
    method: 'GET',
    url,
    peer,
    route: undefined,
    header: name => headers[name],
  }),
  origin: request => request,
}

const PEER = '203.0.113.9'
const requestOf = (one: Plain = {}): HttpRequest => plain.read({ peer: PEER, ...one })
const cookie = (id: string | number) => ({ cookie: `sid=${id}` })

/** Counts how many of `count` requests pass, each with the headers of its number. */
async function passed(options: object, count: number, requestAt: (index: number) => Plain): Promise<number> {
  const enforce = createEnforce({ logger: keepLines().logger, ...options } as AnyOptions<Plain>, plain)
  let allowed = 0
  for (let index = 0; index < count; index++) {
    if ((await enforce({ peer: PEER, ...requestAt(index) })).allowed) allowed++
  }
  return allowed
}

const POLICY =
  'policies: { api: { algorithm: sliding-window-log, limit: 20, window: 1h } }\ndefault: { policy: api }\n'
const gateOf = async (text: string) =>
  createLimiter({ config: await parseConfig(POLICY + text, 'file.yaml'), subject: { secret: 'of the test' } })
const withSession = (more = '') =>
  gateOf(`identify:\n  - apikey: {}\n  - session: { cookie: sid, unverified: true${more} }\n  - ip\n`)

describe('a caller that anybody can make up', () => {
  it('rotating sessions give an address ten budgets, and no more; another address has its own', async () => {
    const ruled = await withSession()
    expect(await passed({ limiter: ruled }, 400, index => ({ headers: cookie(index) }))).toBe(200)
    expect(await passed({ limiter: ruled }, 40, () => ({ headers: cookie('one') }))).toBe(0)
    expect(
      await passed({ limiter: ruled }, 40, () => ({ peer: '198.51.100.1', headers: cookie('one') })),
    ).toBe(20)
    // Without a session it is an address like any other, with a budget of its own.
    expect(await passed({ limiter: ruled }, 40, () => ({}))).toBe(20)
  })

  it('an office behind one address works: ten sessions have their limits each', async () => {
    const ruled = await withSession()
    for (let person = 0; person < 10; person++)
      expect(await passed({ limiter: ruled }, 30, () => ({ headers: cookie(person) }))).toBe(20)
    expect(await passed({ limiter: ruled }, 3, () => ({ headers: cookie('eleventh') }))).toBe(0)
  })

  it('a denied request charges neither the caller nor the address', async () => {
    const ruled = await withSession()
    expect(await passed({ limiter: ruled }, 500, () => ({ headers: cookie('one') }))).toBe(20)
    expect(await passed({ limiter: ruled }, 400, index => ({ headers: cookie(index) }))).toBe(180)
  })

  it('perAddress says how many budgets, and off that the caller is verified elsewhere', async () => {
    const sid = (index: number) => ({ headers: cookie(index) })
    expect(await passed({ limiter: await withSession(', perAddress: 2') }, 100, sid)).toBe(40)
    expect(await passed({ limiter: await withSession(', perAddress: off') }, 400, sid)).toBe(400)
  })

  it.each<[string, string, (index: number) => Record<string, string>]>([
    ['an unverified key', 'apikey: { unverified: true }', index => ({ 'x-api-key': `k${index}` })],
    [
      'a user anybody names',
      'user: { header: x-user, from: everybody }',
      index => ({ 'x-user': `${index}` }),
    ],
    ['a tenant anybody names', 'tenant: { header: x-t, from: everybody }', index => ({ 'x-t': `${index}` })],
    [
      'a service anybody names',
      'internal: { header: x-s, from: everybody }',
      index => ({ 'x-s': `${index}` }),
    ],
    ['a fingerprint', 'fingerprint: {}', index => ({ 'user-agent': `${index}` })],
  ])('%s is held the same way', async (_, source, headersAt) => {
    const ruled = await gateOf(`identify:\n  - ${source}\n  - ip\n`)
    expect(await passed({ limiter: ruled }, 300, index => ({ headers: headersAt(index) }))).toBe(200)
  })

  it('two such sources share what an address has, whichever is rotated', async () => {
    const ruled = await gateOf(
      'identify:\n  - apikey: { unverified: true }\n  - session: { cookie: sid, unverified: true }\n  - ip\n',
    )
    const rotate = (index: number) => ({
      headers: index % 2 === 0 ? { 'x-api-key': `k${index}` } : cookie(index),
    })
    expect(await passed({ limiter: ruled }, 500, rotate)).toBe(200)
  })

  it('a key that the file or an operator names was not made up', async () => {
    const ruled = await gateOf(
      'identify:\n  - apikey: { unverified: true }\n  - ip\nsubjects: { "apikey:known": { policy: api } }\n',
    )
    expect(await passed({ limiter: ruled }, 300, index => ({ headers: { 'x-api-key': `k${index}` } }))).toBe(
      200,
    )
    expect(await passed({ limiter: ruled }, 30, () => ({ headers: { 'x-api-key': 'known' } }))).toBe(20)
    const limits = { 'log-1h': 30 }
    await ruled.overrides.set({ subject: 'apikey:lifted', limits, ttl: '1h', by: 'ada', reason: 'test' })
    expect(await passed({ limiter: ruled }, 40, () => ({ headers: { 'x-api-key': 'lifted' } }))).toBe(30)
  })

  it('networks of IPv6 are held as for any caller: four times as much for a /56', async () => {
    const ruled = await withSession()
    const from = (index: number) => ({
      peer: `2001:db8:1:${(index & 255).toString(16)}::1`,
      headers: cookie(index),
    })
    expect(await passed({ limiter: ruled }, 1_000, from)).toBe(800)
  })

  it('rules, tiers, costs and further subjects apply to the address as to the caller', async () => {
    const ruled = await gateOf(
      `tiers: { anonymous: { minute: 5 }, free: { minute: 2 } }
identify:
  - session: { cookie: sid, unverified: true, tier: free }
  - tenant: { header: x-t, from: everybody, perAddress: 3 }
  - ip
rules:
  - { match: { path: /tier }, name: tier }
  - { match: { path: /dear }, policy: api, cost: 5, scope: dear }
  - { match: { path: /own, subject: ip }, policy: api, scope: own, also: [{ subject: tenant, policy: api }] }
  - { match: { path: /all }, policy: api, scope: all, per: everyone }
`,
    )
    const at = (url: string) => (index: number) => ({ url, headers: { ...cookie(index), 'x-t': `${index}` } })
    expect(await passed({ limiter: ruled }, 50, at('/tier'))).toBe(20)
    expect(await passed({ limiter: ruled }, 50, at('/dear'))).toBe(40)
    expect(await passed({ limiter: ruled }, 50, at('/own'))).toBe(20)
    expect(await passed({ limiter: ruled }, 50, at('/all'))).toBe(20)
  })

  it('a limiter charges the address, too, by policy and by tier, beside what also names', async () => {
    const limiter = createLimiter({
      policies: { api: slidingWindowLog({ limit: 5, window: '1h' }) },
      tiers: { free: tier({ minute: 2 }) },
    })
    const identify = createIdentify({ sources: [session({ cookie: 'sid', unverified: true }), ip()] })
    const sid = (index: number) => ({ headers: cookie(index) })
    expect(await passed({ limiter, policy: 'api', identify }, 100, sid)).toBe(50)
    expect(await passed({ limiter, tier: 'free', identify }, 100, sid)).toBe(20)
    const also = [{ subject: 'tenant:acme', policy: 'api' }]
    expect(await passed({ limiter, policy: 'api', scope: 'x', identify, also }, 100, sid)).toBe(5)
  })

  it('a function of your own may say the same of what it finds', async () => {
    const source = custom(({ header }) => ({ subject: `device:${header('x-device')}`, perAddress: 2 }))
    const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 5, window: '1h' }) } })
    const identify = createIdentify({ sources: [source] })
    const device = (index: number) => ({ headers: { 'x-device': `${index}` } })
    expect(await passed({ limiter, policy: 'api', identify }, 100, device)).toBe(10)
    const ruled = await withSession()
    const facts = {
      subject: 'device:1',
      perAddress: { address: 'ip:1.2.3.4', minted: [{ subject: 'device:1', times: 0 }] },
    }
    await expect(ruled.request(facts as never)).rejects.toThrow('times: expected a whole number from 1')
  })

  it('where no address is known, all made-up callers share one, and a warning says so', async () => {
    const ruled = await withSession()
    const { logger, fields } = keepLines()
    const limited = limitFetch({ limiter: ruled, identify: ruled.identify, logger })(() => new Response('ok'))
    let allowed = 0
    for (let index = 0; index < 300; index++) {
      if ((await limited(new Request('http://a/', { headers: cookie(index) }))).ok) allowed++
    }
    expect(allowed).toBe(200)
    expect(fields).toEqual([{ code: 'WARN_HEADGATE_NO_ADDRESS' }])
  })

  it('headers show the limit that binds, and explain, inspect and reset know the address', async () => {
    const ruled = await withSession()
    const enforce = createEnforce({ limiter: ruled } as AnyOptions<Plain>, plain)
    const ask = async (id: number | string) => {
      const { headers } = await enforce({ peer: PEER, headers: cookie(id) })
      const of = Object.fromEntries(headers)
      return [of['X-RateLimit-Limit'], of['X-RateLimit-Remaining']]
    }
    expect(await ask('first')).toEqual(['20', '19'])
    expect(await passed({ limiter: ruled }, 195, index => ({ headers: cookie(index) }))).toBe(195)
    expect(await ask('next')).toEqual(['200', '3'])
    for (const id of ['a', 'b', 'c']) await ask(id)
    expect(await ask('last')).toEqual(['200', '0'])
    const { text } = ruled.explain({
      subject: ['session:x', `ip:${PEER}`],
      perAddress: { address: `ip:${PEER}`, minted: [{ subject: 'session:x', times: 10 }] },
    })
    expect(text).toContain(`and to ip:${PEER}, policy api/shared: sliding-window-log 200 in 1h`)
    const { limits } = await ruled.inspect(`ip:${PEER}`)
    expect(limits).toContainEqual(
      expect.objectContaining({ name: 'api.log-1h/shared', limit: 200, used: 200 }),
    )
    await ruled.reset(`ip:${PEER}`)
    expect(await ask('again')).toEqual(['20', '19'])
  })
})

describe('a service that names itself', () => {
  const OWN = ['10.0.0.0/8']
  const PROXIES = ['10.9.0.0/16']
  const service = { 'x-service': 'billing' }
  const isBelieved = (source: SubjectSource, request: Plain) => {
    const identity = createIdentify({ sources: [source] })(requestOf(request))
    return 'subjects' in identity && JSON.stringify(identity.subjects).includes('billing')
  }

  it('a service is believed by its own address, not by that of the proxy before it', () => {
    const source = internal({ header: 'x-service', from: OWN, trustedProxies: PROXIES })
    const through = (client: string) => ({
      peer: '10.9.0.1',
      headers: { ...service, 'x-forwarded-for': client },
    })
    expect(isBelieved(source, { peer: '10.0.0.7', headers: service })).toBe(true)
    expect(isBelieved(source, through('10.0.0.7'))).toBe(true)
    expect(isBelieved(source, through('198.51.100.1'))).toBe(false)
    expect(isBelieved(source, through('10.0.0.7, 198.51.100.1'))).toBe(false)
    expect(isBelieved(source, { peer: '198.51.100.1', headers: service })).toBe(false)
  })

  it('a file holds a client behind its proxy to the client’s limits, whatever service it names', async () => {
    const ruled = await gateOf(`trustedProxies: [10.9.0.0/16]
identify:
  - internal: { header: x-service, from: [10.0.0.0/8], tier: internal }
  - ip
`)
    const through = (index: number) => ({
      peer: '10.9.0.1',
      headers: { 'x-service': `s${index}`, 'x-forwarded-for': '198.51.100.1' },
    })
    expect(await passed({ limiter: ruled }, 100, through)).toBe(20)
  })

  it('users and tenants are named by the proxy itself, which is believed by its address', () => {
    for (const make of [user, tenant]) {
      const source = make({ header: 'x-service', from: OWN })
      expect(isBelieved(source, { peer: '10.9.0.1', headers: service })).toBe(true)
      expect(isBelieved(source, { headers: service })).toBe(false)
    }
  })

  it.each<[string, string, number]>([
    ['the same network', '[10.0.0.0/8]', 1],
    ['a part of it', '[10.1.2.3]', 1],
    ['a wider one', '[192.0.2.1, 10.0.0.0/8]', 1],
    ['everybody', 'everybody', 1],
    ['another network', '[192.0.2.0/24]', 0],
    ['hops', '{ hops: 1 }', 0],
  ])('a file that trusts %s as proxies is warned about', async (_, trustedProxies, count) => {
    const codes: string[] = []
    const text = `trustedProxies: ${trustedProxies}\nidentify:\n  - internal: { header: x-s, from: [10.0.0.0/8] }\n  - ip\n`
    await parseConfig(POLICY + text, 'f.yaml', { onWarning: ({ code }) => codes.push(code) })
    expect(codes.filter(code => code === 'WARN_HEADGATE_INTERNAL_OF_PROXY')).toHaveLength(count)
  })
})

describe('perAddress', () => {
  it.each<[string, string, string]>([
    [
      'a number below 1',
      'session: { cookie: sid, unverified: true, perAddress: 0 }',
      'perAddress: expected a whole number',
    ],
    ['another word', 'session: { cookie: sid, unverified: true, perAddress: never }', 'perAddress'],
    ['it beside known keys', 'apikey: { perAddress: 3 }', 'perAddress: expected unverified: true beside it'],
    [
      'it beside networks',
      'user: { header: x, from: [10.0.0.1], perAddress: 3 }',
      'perAddress: expected from: everybody',
    ],
    ['it of an address', 'ip: { perAddress: 3 }', 'perAddress'],
  ])('a file with %s is rejected', async (_, source, message) => {
    await expect(parseConfig(`${POLICY}identify:\n  - ${source}\n`, 'f.yaml')).rejects.toThrow(message)
  })

  it('code with the same mistakes is rejected, too', () => {
    const lookUp = () => null
    for (const make of [
      () => session({ cookie: 'sid', unverified: true, perAddress: 0.5 }),
      () => apiKey({ lookUp, perAddress: 3 }),
      () => user({ header: 'x', from: ['10.0.0.1'], perAddress: 3 }),
      () => fingerprint({ perAddress: 'no' as never }),
    ])
      expect(make).toThrow(/^perAddress: expected/)
  })

  it('what a file finds says who was made up', async () => {
    const file =
      'identify:\n  - session: { cookie: sid, unverified: true }\n  - fingerprint: { perAddress: 4 }\n  - ip\n'
    const identify = identifyByConfig(await parseConfig(POLICY + file, 'f.yaml'))
    expect(identify(requestOf({ headers: cookie('a') }))).toMatchObject({
      subjects: ['session:a', expect.stringMatching(/^fingerprint:/), `ip:${PEER}`],
      perAddress: {
        address: `ip:${PEER}`,
        minted: [
          { subject: 'session:a', times: 10 },
          { subject: expect.stringMatching(/^fingerprint:/), times: 4 },
        ],
      },
    })
  })
})
