import { request } from 'node:http'
import { NextRequest } from 'next/server.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { defineConfig } from '../../src/config.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import { isStaticAsset, limitAction, rateLimit, withRateLimit } from '../../src/next.ts'
import { memoryStore } from '../../src/store/memory/memory-store.ts'
import type { ServerUnderTest } from '../../src/testing/adapters/adapter-law.ts'
import { configOf, perMinute } from '../support/rule-config.ts'
import { startNextApp } from './next-app.ts'

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

/** Ways past a proxy or its matcher, by headers and by targets; `fetch` rejects to send some of them. */
const SUBREQUEST = ['proxy', 'src/proxy', 'middleware', 'src/middleware', 'pages/_middleware']
const HEADERS: readonly Record<string, string>[] = [
  ...SUBREQUEST.map(name => ({ 'x-middleware-subrequest': Array(5).fill(name).join(':') })),
  { rsc: '1' },
  { rsc: '1', 'next-router-prefetch': '1' },
  { rsc: '1', 'next-router-prefetch': '1', 'next-router-segment-prefetch': '/_tree' },
  { purpose: 'prefetch', 'x-middleware-prefetch': '1' },
  { 'x-nextjs-data': '1' },
  { 'x-matched-path': '/robots.txt', 'x-invoke-path': '/robots.txt' },
]

describe('an app that is built and started', () => {
  let app: ServerUnderTest
  let client = 0
  beforeAll(async () => {
    app = await startNextApp()
  }, 240_000)
  afterAll(() => app?.close())

  /** Asks on behalf of a client that has not asked before. */
  function newClient() {
    const address = `192.0.2.${++client}`
    return (
      path: string,
      headers: Record<string, string> = {},
      form?: { type: string; body: Buffer },
    ): Promise<Answer> =>
      new Promise((resolve, reject) => {
        const { hostname, port } = new URL(app.url)
        const sent = request({
          hostname,
          port,
          path,
          agent: false,
          method: form ? 'POST' : 'GET',
          headers: { 'x-forwarded-for': address, ...(form && { 'content-type': form.type }), ...headers },
        })
        sent.on('response', response => {
          let body = ''
          response.setEncoding('utf8').on('data', chunk => {
            body += chunk
          })
          const { statusCode: status = 0, headers } = response
          response.on('end', () => resolve({ status, headers, body }))
        })
        sent.on('error', reject).end(form?.body)
      })
  }

  it('a route handler is limited by its inline limit, for each client', async () => {
    const ask = newClient()
    for (let left = 4; left >= 0; left--) {
      const { status, headers, body } = await ask('/api/structures/1abc')
      expect([status, headers['x-ratelimit-remaining'], body]).toEqual([200, String(left), '{"id":"1abc"}'])
    }
    const denied = await ask('/api/structures/1abc')
    expect([denied.status, denied.headers['content-type']]).toEqual([429, 'application/problem+json'])
    expect(denied.headers).toMatchObject({
      'x-ratelimit-limit': '5',
      'x-ratelimit-policy': 'per-endpoint',
      'retry-after': expect.stringMatching(/^\d+$/),
    })
    expect((await newClient()('/api/structures/1abc')).status).toBe(200)
  })

  it('a route handler is limited whatever way a request takes to it', async () => {
    const ask = newClient()
    const path = '/api/structures/1abc'
    const ways: readonly (readonly [string, Record<string, string>?])[] = [
      ...HEADERS.map(headers => [path, headers] as const),
      ...['_rsc=1', 'nxtPid=2xyz', 'nxtPlocale=de', 'nextLocale=de', '__nextLocale=de'].map(
        query => [`${path}?${query}`] as const,
      ),
      ...['/de', '/fr', '/DE'].map(locale => [locale + path] as const),
      ...['/%61pi/structures/1abc', '/api//structures/1abc', '/api/structures/1abc/'].map(
        spelling => [spelling] as const,
      ),
      ...['.rsc', '.segments/_tree.segment.rsc', '.json'].map(ending => [path + ending] as const),
      ['/_next/data/build/api/structures/1abc.json'],
    ]
    const answers: Answer[] = []
    for (const [target, headers] of ways) answers.push(await ask(target, headers))
    expect(answers.filter(({ body }) => body.startsWith('{"id":'))).toHaveLength(5)
    expect(answers.filter(({ status }) => status === 429).length).toBeGreaterThan(10)
    // The others found no handler: Next.js answers a prefetch itself, redirects, or has no such path.
    expect(
      answers.filter(({ status, body }) => ![308, 404, 429].includes(status) && body === '{}'),
    ).toHaveLength(1)
  })

  it('pages are limited in the proxy, whatever a request says of itself, and assets pass', async () => {
    const ask = newClient()
    const page = await ask('/')
    expect([page.status, page.headers['x-ratelimit-remaining']]).toEqual([200, '19'])
    const chunk = /\/_next\/static\/[^"]+\.js/.exec(page.body)?.[0] ?? 'no chunk'
    for (const asset of ['/robots.txt', chunk]) {
      const { status, headers } = await ask(asset)
      expect([asset, status, headers['x-ratelimit-limit']]).toEqual([asset, 200, undefined])
    }
    for (const segment of ['/index.rsc', '/index.segments/_tree.segment.rsc', '/de'])
      expect((await ask(segment)).headers).toHaveProperty('x-ratelimit-remaining')
    for (let left = 15; left >= 0; left--)
      expect((await ask('/')).headers['x-ratelimit-remaining']).toBe(String(left))
    const targets = ['/', '/?_rsc=1', '/?nxtPid=1', '/de', '/login', '/index.rsc', '/login.rsc']
    for (const path of targets) {
      for (const headers of [{}, ...HEADERS])
        expect([path, (await ask(path, headers)).status]).toEqual([path, 429])
    }
  })

  it('a denied server action returns the problem', async () => {
    const ask = newClient()
    const { body: page } = await ask('/login')
    const form = new FormData()
    for (const [, name = '', value = ''] of page.matchAll(
      /<input[^>]*? name="([^"]+)"(?: value="([^"]*)")?/g,
    ))
      form.set(name, value.replaceAll('&quot;', '"'))
    const login = async () => {
      const sent = new Response(form)
      const body = Buffer.from(await sent.arrayBuffer())
      const answer = await ask(
        '/login',
        { origin: app.url },
        { type: sent.headers.get('content-type') ?? '', body },
      )
      return /<output>([^<]*)/.exec(answer.body)?.[1]
    }
    expect([await login(), await login(), await login()]).toEqual([
      'welcome, you',
      'welcome, you',
      expect.stringMatching(/^too many attempts: try again in \d+ s$/),
    ])
  })
})

const requestOf = (path: string, init?: ConstructorParameters<typeof NextRequest>[1]) =>
  new NextRequest(`http://localhost${path}`, init)

it('the rules of a limiter match the path that the router takes: without base path and locale', async () => {
  const config = defineConfig({
    policies: { login: perMinute(1) },
    rules: [{ match: { path: '/login' }, policy: 'login' }],
  })
  const ruled = createLimiter({ config })
  const handler = withRateLimit(async () => new Response('hello'), { limiter: ruled, subject: 'user:1' })
  const i18n = { locales: ['en', 'de'], defaultLocale: 'en' }
  const statuses = []
  for (const path of ['/base/login', '/base/de/login', '/base/login?x=1', '/base/other'])
    statuses.push((await handler(requestOf(path, { nextConfig: { basePath: '/base', i18n } }))).status)
  expect(statuses).toEqual([200, 429, 429, 200])
})

it('handlers on one store share the budget of a scope', async () => {
  const inline = { limit: 2, window: '1m', scope: 'export', subject: 'user:1', store: memoryStore() } as const
  const hello = async (_: Request, { id }: { id: number }) => Response.json(id)
  const [one, other] = [withRateLimit(hello, inline), withRateLimit(hello, inline)]
  const statuses = []
  for (const handler of [one, other, one]) statuses.push((await handler(requestOf('/'), { id: 1 })).status)
  expect(statuses).toEqual([200, 200, 429])
  const elsewhere = withRateLimit(hello, { ...inline, scope: 'import' })
  expect((await elsewhere(requestOf('/'), { id: 1 })).status).toBe(200)
})

it('the proxy takes files and what Next.js has built for static, and nothing else', () => {
  const isStatic = (path: string, method = 'GET') => isStaticAsset(requestOf(path, { method }))
  for (const path of ['/_next/static/a.js', '/_next/image?url=a', '/favicon.ico', '/a/b.WOFF2'])
    expect([path, isStatic(path)]).toEqual([path, true])
  for (const path of [
    '/',
    '/_next',
    '/a.b/c',
    '/v1.2',
    '/data.json',
    '/a.rsc',
    '/a?x=.png',
    '/_next/../api/x',
  ])
    expect([path, isStatic(path)]).toEqual([path, false])
  expect(isStatic('/favicon.ico', 'POST')).toBe(false)
})

it('the Next.js adapter rejects wrong options when it is made', () => {
  const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 1, window: '1m' }) } })
  const hello = async () => new Response('hello')
  const wrong: readonly (readonly [() => unknown, RegExp])[] = [
    [() => rateLimit({ limiter, policy: 'api' } as never), /^subject: expected a function of the request/],
    [
      () => withRateLimit(hello, { limit: 1, window: 60, scope: 'x' } as never),
      /^subject: expected a function/,
    ],
    [
      () => withRateLimit(hello, { limit: -1, window: 60, scope: 'x', subject: 'user:1' }),
      /^limit: expected a whole number/,
    ],
    [
      () => limitAction(async () => 1, { limiter: {}, subject: 'user:1' } as never),
      /^limiter: expected what createLimiter/,
    ],
    [
      () => limitAction(async () => 1, { limiter: createLimiter({ config: configOf() }), subject: 'user:1' }),
      /^policy: expected/,
    ],
  ]
  for (const [make, message] of wrong) expect(make).toThrow(message)
})
