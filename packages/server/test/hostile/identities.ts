/** Clients that pretend to be many, or somebody else. */
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, slidingWindowLog } from 'headgate'
import { rateLimit } from 'headgate/fetch'
import { runHeadgate } from '../support/headgate-process.js'
import { lines, rawRequest } from '../support/raw-http.js'
import type { Attack, AttackGroup } from './attack.js'
import { inParallel } from './in-parallel.js'
import { type Target, underAttack } from './target.js'

const LIMIT = 20
const AT_ONCE = 16
const policy = `policies:\n  api: { algorithm: sliding-window-log, limit: ${LIMIT}, window: 1h }\ndefault: { policy: api }\n`
const behindProxy = `${policy}trustedProxies: [127.0.0.1]\n`
const hex = (number: number) => number.toString(16)

/** Sends `count` requests, each with the headers for its number, and counts those that pass. */
async function passed(
  { gatewayUrl }: Target,
  count: number,
  headersOf: (index: number) => Record<string, string>,
): Promise<number> {
  let allowed = 0
  await inParallel(count, AT_ONCE, async index => {
    const answer = await fetch(gatewayUrl, { headers: headersOf(index) })
    await answer.arrayBuffer()
    if (answer.status !== 200 && answer.status !== 429) throw new Error(`answered with ${answer.status}`)
    if (answer.ok) allowed++
  })
  return allowed
}

function expectPassed(what: string, got: number, expected: number): void {
  if (got !== expected) throw new Error(`${got} of ${what} passed, ${expected} should have`)
}

const SPOOFS: readonly ((address: string) => Record<string, string>)[] = [
  address => ({ 'x-forwarded-for': address }),
  address => ({ 'x-real-ip': address }),
  address => ({ forwarded: `for=${address}` }),
  address => ({ 'cf-connecting-ip': address }),
  address => ({ 'true-client-ip': address }),
  address => ({ 'x-client-ip': address }),
]

const forgedAddresses: Attack = {
  name: 'forged addresses',
  does: 'names another address in each request, in six headers, while nobody is trusted',
  expected: 'one caller: exactly the limit passes',
  inShort: false,
  run: () =>
    underAttack({ config: policy }, async target => {
      const count = 1_000
      const got = await passed(target, count, index => {
        const spoof = SPOOFS[index % SPOOFS.length] as (typeof SPOOFS)[number]
        return spoof(`198.51.${index >> 8}.${index & 255}`)
      })
      // One was sent before the attack, from the same address.
      expectPassed(`${count} requests`, got, LIMIT - 1)
      return `${got + 1} of ${count} passed`
    }),
}

const FORGED: readonly (readonly string[])[] = [
  ['X-Forwarded-For: 1.1.1.1, 203.0.113.9'],
  ['X-Forwarded-For: 1.1.1.1', 'X-Forwarded-For: 203.0.113.9'],
  ['X-Forwarded-For: unknown, 203.0.113.9:4711'],
  ['X-Forwarded-For: 127.0.0.1, 203.0.113.9, 127.0.0.1'],
  ['X-Forwarded-For: ::ffff:203.0.113.9'],
  ['X-Forwarded-For: 1.1.1.1, ::FFFF:cb00:7109'],
  ['X-Forwarded-For: 203.0.113.9', 'Forwarded: for=1.1.1.1', 'X-Real-IP: 1.1.1.1'],
  [`X-Forwarded-For: ${'1.1.1.1, '.repeat(1_000)}203.0.113.9`],
]

const forgedEntries: Attack = {
  name: 'forged entries',
  does: 'writes addresses before its own, in several lines, spellings and by the thousand, through a trusted proxy',
  expected: 'one caller: exactly the limit passes',
  inShort: true,
  run: () =>
    underAttack({ config: behindProxy }, async ({ gatewayUrl }) => {
      const statuses: number[] = []
      for (let request = 0; request < 2 * LIMIT; request++) {
        const headers = FORGED[request % FORGED.length] as readonly string[]
        const bytes = lines('GET / HTTP/1.1', 'Host: a', 'Connection: close', ...headers)
        statuses.push((await rawRequest(gatewayUrl, bytes)).status)
      }
      const got = statuses.filter(status => status === 200).length
      expectPassed(`${statuses.length} requests`, got, LIMIT)
      return `${got} of ${statuses.length} passed`
    }),
}

const manyNetworks: Attack = {
  name: 'many networks',
  does: 'owns a /48: comes from random addresses of one /64, from 256 networks of /64 of one /56, and from 256 of /56',
  expected: 'the limit for the /64, 4 times as much for the /56, 16 times for the /48',
  inShort: false,
  run: ({ seed }) =>
    underAttack({ config: behindProxy }, async target => {
      const from = (address: string) => ({ 'x-forwarded-for': address })
      const addresses = 8_192
      const inOne = await passed(target, addresses, index =>
        from(`2001:db8:1:0:${hex((seed + index) & 0xffff)}:${hex(index)}::1`),
      )
      expectPassed(`${addresses} addresses of a /64`, inOne, LIMIT)
      const inFew = await passed(target, 512, index => from(`2001:db8:1:${hex(index & 255)}::${hex(index)}`))
      expectPassed('the networks of a /56', inFew, 3 * LIMIT)
      const inAll = await passed(target, 1_024, index =>
        from(`2001:db8:1:${hex((index & 255) * 256)}::${hex(index)}`),
      )
      expectPassed('the networks of a /48', inAll, 12 * LIMIT)
      return `${inOne} of ${addresses}, then ${inFew} more of the /56 and ${inAll} more of the /48`
    }),
}

const SPELLINGS = [
  '1.2.3.4',
  '::ffff:1.2.3.4',
  '::FFFF:1.2.3.4',
  '::ffff:102:304',
  '0:0:0:0:0:ffff:102:304',
  '0000:0000:0000:0000:0000:ffff:0102:0304',
  '1.2.3.4:80',
  '[::ffff:1.2.3.4]:80',
  '::ffff:1.2.3.4%a',
]

const spellings: Attack = {
  name: 'spellings of an address',
  does: `spells one address in ${SPELLINGS.length} ways, and the zones of one link from a to z`,
  expected: 'one caller each; octal, short and numeric forms are not addresses and are charged to the proxy',
  inShort: false,
  run: () =>
    underAttack({ config: behindProxy }, async target => {
      const from = (address: string) => ({ 'x-forwarded-for': address })
      const got = await passed(target, 90, index => from(SPELLINGS[index % SPELLINGS.length] as string))
      expectPassed('the spellings of 1.2.3.4', got, LIMIT)
      const zones = await passed(target, 52, index =>
        from(`fe80::1%${String.fromCharCode(97 + (index % 26))}`),
      )
      expectPassed('the zones of fe80::1', zones, LIMIT)
      const rubbish = ['0177.0.0.1', '2130706433', '127.1', '0x7f.1']
      const ofProxy = await passed(target, 2 * LIMIT, index => from(rubbish[index % 4] as string))
      // One was sent before the attack, from the proxy's address.
      expectPassed('what is no address', ofProxy, LIMIT - 1)
      return `${got}, ${zones} and ${ofProxy} passed`
    }),
}

const madeUpKeys: Attack = {
  name: 'made-up keys',
  does: 'makes up a new API key, token and service for each request',
  expected: 'none of them is believed: exactly the limit of its address passes',
  inShort: true,
  run: ({ isShort }) => {
    const identify =
      'identify:\n  - internal: { header: x-service, from: [10.0.0.0/8] }\n  - apikey: {}\n  - ip\nsubjects: { "apikey:sk_known": { tier: pro } }\n'
    return underAttack({ config: policy + identify }, async target => {
      const count = isShort ? 100 : 1_000
      const got = await passed(target, count, index => ({
        'x-api-key': `sk_${index}`,
        authorization: `Bearer a.${index}.c`,
        'x-service': `service-${index}`,
      }))
      expectPassed(`${count} requests`, got, LIMIT - 1)
      return `${got + 1} of ${count} passed`
    })
  },
}

/** What a missing value leaves of an id. */
const NOTHING = ['', ' ', '\t', 'undefined', 'null', 'NaN', '[object Object]']

const namedByNobody: Attack = {
  name: 'named by nobody',
  does: 'sends empty, blank, undefined and null users, keys and sessions to the gateway, to forward-auth, and to an app with the line of the guide',
  expected: 'one caller: exactly the limit passes',
  inShort: true,
  run: ({ isShort }) => {
    const identify = `identify:
  - user: { header: x-user, from: [127.0.0.1] }
  - session: { cookie: sid, unverified: true }
  - apikey: { unverified: true }
  - ip
`
    return underAttack({ config: policy + identify }, async ({ gatewayUrl, adminUrl }) => {
      const count = isShort ? 70 : 700
      let got = 0
      let asked = 0
      for (let request = 0; request < count; request++) {
        const id = NOTHING[request % NOTHING.length] as string
        const named = [[`X-User: ${id}`], [`Cookie: sid=${encodeURIComponent(id)}`], [`X-Api-Key: ${id}`]][
          request % 3
        ]
        const headers = ['Host: a', 'Connection: close', ...(named as string[])]
        const { status } = await rawRequest(gatewayUrl, lines('GET / HTTP/1.1', ...headers))
        if (status === 200) got++
        const about = ['X-Forwarded-Method: GET', 'X-Forwarded-Uri: /', 'X-Forwarded-For: 127.0.0.1']
        const question = lines(
          'GET /v1/forward-auth HTTP/1.1',
          ...headers.slice(1),
          'Host: 127.0.0.1',
          ...about,
        )
        if ((await rawRequest(adminUrl, question)).status === 200) asked++
      }
      // One was sent before the attack, and both doors lead to one budget.
      expectPassed(`${count} requests`, got + asked, LIMIT - 1)
      return `${got + asked + 1} of ${2 * count} passed, ${await passedInApp(count)} of ${count} in the app`
    })
  },
}

/** The app of the guide on fetch handlers. */
async function passedInApp(count: number): Promise<number> {
  const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: LIMIT, window: '1h' }) } })
  const logger = { info: () => {}, warn: () => {}, error: () => {} }
  const limited = rateLimit({
    limiter,
    logger,
    policy: 'api',
    subject: request => ({ type: 'apikey', id: request.headers.get('x-api-key') ?? '' }),
  })(() => new Response('hello'))
  let got = 0
  for (let request = 0; request < count; request++) {
    const headers = { 'x-api-key': NOTHING[request % NOTHING.length] as string }
    if ((await limited(new Request('http://a/', { headers }))).ok) got++
  }
  expectPassed(`${count} requests in an app`, got, LIMIT)
  return got
}

/** A token in the right form, for a key set of RSA, whose signature is made up. */
function madeUpToken(head: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = { sub: '42', iss: 'issuer', aud: 'api', exp: 4_000_000_000 }
  return `${part({ alg: 'RS256', ...head })}.${part(claims)}.${Buffer.alloc(256, 7).toString('base64url')}`
}

const tokensOfNoKey: Attack = {
  name: 'tokens of no key',
  does: 'sends made-up JSON Web Tokens that name none of the ten keys',
  expected: 'they cost no more than ones that name a key, and identify nobody',
  inShort: false,
  run: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-hostile-jwks-'))
    const file = join(folder, 'jwks.json')
    const keys = Array.from({ length: 10 }, (_, index) => ({
      ...generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' }),
      kid: `key-${index}`,
      alg: 'RS256',
    }))
    writeFileSync(file, JSON.stringify({ keys }))
    const identify = `identify:\n  - jwt: { jwks: ${file}, algorithms: [RS256], issuer: issuer, audience: api }\n  - ip\n`
    try {
      return await underAttack({ config: policy + identify }, async target => {
        const tokens = { named: madeUpToken({ kid: 'key-1' }), unnamed: madeUpToken({}) }
        const timeOf = async (token: string) => {
          const began = performance.now()
          await passed(target, 1_000, () => ({ authorization: `Bearer ${token}` }))
          return performance.now() - began
        }
        const times: { named: number; unnamed: number }[] = []
        for (let round = 0; round < 3; round++) {
          times.push({ named: await timeOf(tokens.named), unnamed: await timeOf(tokens.unnamed) })
        }
        const ratio = Math.min(...times.map(({ named, unnamed }) => unnamed / named))
        if (ratio > 1.2) throw new Error(`${ratio.toFixed(1)} times the cost of a token that names its key`)
        return `${ratio.toFixed(1)} times the cost of a token that names its key`
      })
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
}

const ROTATING = `identify:
  - internal: { header: x-service, from: [10.0.0.0/8], tier: internal }
  - apikey: {}
  - session: { cookie: sid, unverified: true }
  - ip
`

const rotatingSessions: Attack = {
  name: 'rotating sessions',
  does: 'sends a new session cookie with each request, as the list of sources in the guide reads it; then the same through forward-auth',
  expected: 'ten times the limit of one session, for its address',
  inShort: true,
  run: ({ isShort }) =>
    underAttack({ config: policy + ROTATING }, async target => {
      const count = isShort ? 300 : 3_000
      const got = await passed(target, count, index => ({ cookie: `sid=${index}` }))
      expectPassed(`${count} sessions`, got, 10 * LIMIT)
      let asked = 0
      for (let index = 0; index < count / 10; index++) {
        const headers = ['X-Forwarded-Method: GET', 'X-Forwarded-Uri: /', 'X-Forwarded-For: 127.0.0.1']
        const question = ['GET /v1/forward-auth HTTP/1.1', 'Host: 127.0.0.1', 'Connection: close', ...headers]
        const { status } = await rawRequest(target.adminUrl, lines(...question, `Cookie: sid=a${index}`))
        if (status === 200) asked++
      }
      expectPassed('more sessions through forward-auth', asked, 0)
      return `${got} of ${count} passed, then ${asked}`
    }),
}

const servicesOfStrangers: Attack = {
  name: 'services of strangers',
  does: 'names itself an internal service from behind a trusted proxy, whose network services are in, too',
  expected: 'it is not believed: exactly the limit of its address passes',
  inShort: true,
  run: () => {
    const identify = ROTATING.replace('10.0.0.0/8', '127.0.0.0/8')
    const config = `${behindProxy}tiers: default\n${identify}`.replace('127.0.0.1', '127.0.0.0/8')
    return underAttack({ config }, async target => {
      const count = 100
      const got = await passed(target, count, index => ({
        'x-service': `service-${index}`,
        'x-forwarded-for': '198.51.100.7',
      }))
      expectPassed(`${count} requests`, got, LIMIT)
      return `${got} of ${count} passed`
    })
  },
}

const CANARY = 'canary4eC39HqLyjWDarjtT1zdp7dc'

const secretsInSight: Attack = {
  name: 'secrets in sight',
  does: 'sends API keys of up to 12 KB until they are denied, then looks for them in logs, metrics and errors',
  expected: 'they appear nowhere; a warning says that no secret is set',
  inShort: false,
  run: () => {
    const identify = 'identify:\n  - apikey: { unverified: true }\n  - ip\n'
    return underAttack({ config: policy + identify }, async target => {
      const keys = [CANARY, CANARY.repeat(10), CANARY.repeat(400)]
      const got = await passed(target, 3 * 2 * LIMIT, index => ({ 'x-api-key': keys[index % 3] as string }))
      expectPassed('three keys', got, 3 * LIMIT)
      const denied = await fetch(target.gatewayUrl, { headers: { 'x-api-key': CANARY } })
      const metrics = await fetch(`${target.adminUrl}/metrics`)
      const seen = [target.stdout(), await metrics.text(), await denied.text(), ...denied.headers.values()]
      if (seen.join('\n').includes(CANARY)) throw new Error('a key was shown')
      if (!target.stdout().includes('WARN_HEADGATE_DEFAULT_SECRET')) throw new Error('no warning was logged')
      return `${got} passed, no key in ${seen.join('').length} characters`
    })
  },
}

const OPEN_DOORS = [
  '0.0.0.0/0',
  '0.0.0.0/1',
  '::/0',
  '::/7',
  '::/8',
  '::/64',
  '::fffe:0:0/95',
  '::ffff:0:0/96',
]

const openDoors: Attack = {
  name: 'open doors',
  does: 'has an operator trust everybody by mistake: eight wide networks, a number and true',
  expected: 'each is rejected by name before the server listens',
  inShort: false,
  async run() {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-doors-'))
    try {
      const settings = [...OPEN_DOORS.map(network => `["${network}"]`), '1', 'true', '"::ffff:10.0.0.0/8"']
      for (const setting of settings) {
        const file = join(folder, 'headgate.yaml')
        writeFileSync(file, `trustedProxies: ${setting}\nupstream: http://127.0.0.1:1\n`)
        const { code, stderr } = await runHeadgate(['serve', '--config', file, '--port', '0'])
        if (code === 0 || !stderr.includes('trustedProxies'))
          throw new Error(`${setting} was taken: ${stderr}`)
      }
      return `${settings.length} of ${settings.length} rejected`
    } finally {
      rmSync(folder, { recursive: true })
    }
  },
}

export const identities: AttackGroup = {
  title: 'Who is asking',
  attacks: [
    forgedAddresses,
    forgedEntries,
    openDoors,
    manyNetworks,
    spellings,
    madeUpKeys,
    rotatingSessions,
    servicesOfStrangers,
    namedByNobody,
    tokensOfNoKey,
    secretsInSight,
  ],
}
