import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { defineConfig } from '../../config/define-config.js'
import { createLimiter } from '../../limiter/limiter.js'
import { same } from '../laws/law.js'
import { type AdapterLaw, limiterOf, limitOf } from './adapter-law.js'
import { sameHeaders, send, statuses } from './http-client.js'

const QUOTA = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']
const PREFLIGHT = {
  method: 'OPTIONS',
  headers: { origin: 'http://elsewhere.example', 'access-control-request-method': 'POST' },
}
const UPGRADE = {
  headers: {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'sec-websocket-version': '13',
  },
}

/** The answers to requests of every method. */
export const answerLaws: readonly AdapterLaw[] = [
  {
    name: 'an adapter lets a request pass and adds the headers to the answer of the app',
    async run({ serve }) {
      const { url } = await serve(limitOf(2))
      const answer = await send(url)
      same([answer.status, answer.body, answer.header('x-own')], [200, 'hello', 'yes'], 'answer')
      same(answer.header('x-ratelimit-remaining'), '1', 'X-RateLimit-Remaining')
      sameHeaders(answer, QUOTA, true)
      sameHeaders(answer, ['ratelimit', 'retry-after'], false)
    },
  },
  {
    name: 'an adapter rejects with 429, a problem and Retry-After before the app runs',
    async run({ serve }) {
      const { url, handled } = await serve(limitOf(1))
      await send(url)
      const denied = await send(url)
      same(denied.status, 429, 'status')
      same(denied.header('content-type')?.split(';')[0], 'application/problem+json', 'Content-Type')
      same(denied.header('cache-control'), 'no-store', 'Cache-Control')
      same(Number(denied.header('retry-after')) > 0, true, 'Retry-After above 0')
      same(JSON.parse(denied.body).policy, 'api', 'policy of the problem')
      sameHeaders(denied, QUOTA, true)
      sameHeaders(denied, ['x-own'], false)
      same(handled.length, 1, 'requests that reached the app')
    },
  },
  {
    name: 'an adapter rejects with the body of the app, and with a page for a browser that asks for one',
    async run({ serve }) {
      const own = await serve(limitOf(0, { body: () => ({ slow: 'down' }), hide: ['policy'] }))
      const denied = await send(own.url)
      same([denied.status, denied.body], [429, '{"slow":"down"}'], 'answer')
      same(denied.header('content-type')?.split(';')[0], 'application/json', 'Content-Type')
      sameHeaders(denied, ['x-ratelimit-policy'], false)
      const ours = await serve(limitOf(0))
      const page = await send(ours.url, { headers: { accept: 'text/html,*/*;q=0.8' } })
      same([page.status, page.header('content-type')], [429, 'text/html; charset=utf-8'], 'page')
    },
  },
  {
    name: 'an adapter does the same behind a limiter, by its rules, in every spelling of a path',
    applies: ({ onRoutesOnly }) => !onRoutesOnly,
    async run({ serve }) {
      const config = defineConfig({
        policies: { hello: { limits: [slidingWindowLog({ limit: 1, window: '1m' })] } },
        rules: [{ match: { path: '/hello' }, policy: 'hello' }],
      } as Parameters<typeof defineConfig>[0])
      const ruled = createLimiter({ config })
      const { url } = await serve({ limiter: ruled, subject: 'user:1' })
      const answer = await send(url)
      same([answer.status, answer.header('x-ratelimit-remaining')], [200, '0'], 'first')
      for (const path of ['/hello', '/hello?x=1', '/HELLO', '/hello/', '/%68ello']) {
        same((await send(url, { path })).status, 429, path)
      }
      await ruled.close()
    },
  },
  {
    name: 'an adapter charges HEAD like GET, and rejects it without a body',
    async run({ serve }) {
      const { url } = await serve(limitOf(2))
      same(await statuses(url, [{}, { method: 'HEAD' }]), [200, 200], 'statuses')
      const denied = await send(url, { method: 'HEAD' })
      same([denied.status, denied.body], [429, ''], 'denied')
      sameHeaders(denied, ['retry-after', ...QUOTA], true)
      same((await send(url)).status, 429, 'GET after that')
    },
  },
  {
    name: 'an adapter charges OPTIONS and a preflight like any request',
    async run({ serve }) {
      const { url } = await serve(limitOf(2))
      await statuses(url, [{ method: 'OPTIONS' }, PREFLIGHT])
      same(await statuses(url, [{}, PREFLIGHT]), [429, 429], 'statuses')
    },
  },
  {
    name: 'an adapter charges an offer to upgrade that the app leaves unanswered like any request',
    async run({ serve }) {
      const { url } = await serve(limitOf(1))
      same(await statuses(url, [UPGRADE, UPGRADE, {}]), [200, 429, 429], 'statuses')
    },
  },
  {
    name: 'an adapter charges requests that match no route',
    applies: ({ onRoutesOnly }) => !onRoutesOnly,
    async run({ serve }) {
      const { url } = await serve(limitOf(2))
      const nowhere = { path: '/nowhere' }
      same(await statuses(url, [nowhere, nowhere, nowhere, {}]), [404, 404, 429, 429], 'statuses')
    },
  },
  {
    name: 'an adapter does not limit skipped requests',
    async run({ serve }) {
      const { url } = await serve(limitOf(0, { skip: () => true }))
      const answer = await send(url)
      same(answer.status, 200, 'status')
      sameHeaders(answer, QUOTA, false)
    },
  },
  {
    name: 'an adapter charges the address of the client when no subject is given',
    applies: ({ knowsPeer }) => knowsPeer,
    async run({ serve }) {
      const limiter = limiterOf(3)
      const { url } = await serve({ limiter, policy: 'api' })
      // Nothing that a client writes is believed.
      await send(url, { headers: { 'x-forwarded-for': '192.0.2.1', forwarded: 'for=192.0.2.2' } })
      await send(url, { headers: { 'x-real-ip': '192.0.2.3' } })
      same((await limiter.peek('ip:127.0.0.1', { policy: 'api' })).remaining, 1, 'left of 127.0.0.1')
    },
  },
  {
    name: 'an adapter has a budget for each route, in whatever spelling',
    applies: ({ knowsRoute }) => knowsRoute,
    async run({ serveRoutes }) {
      const { url } = await serveRoutes(limitOf(2, { perRoute: true }))
      const items = ['/items/1', '/items/2', '/items/3?x'].map(path => ({ path }))
      same(await statuses(url, items), [200, 200, 429], '/items/:id')
      same(await statuses(url, [{}, { path: '/hello?x=1' }, {}]), [200, 200, 429], '/hello')
    },
  },
]
