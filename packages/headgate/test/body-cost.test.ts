/** Requests that contain many operations, charged by their body on real servers. */
import { createServer } from 'node:http'
import express from 'express'
import { describe, expect, it } from 'vitest'
import { graphqlCost, jsonRpcCost } from '../src/cost.ts'
import { rateLimit } from '../src/express.ts'
import { rateLimit as rateLimitFetch } from '../src/fetch.ts'
import { createLimiter, slidingWindowLog } from '../src/index.ts'
import { listening } from './adapters/listening.ts'

const policies = { operations: slidingWindowLog({ limit: 100, window: '1m' }) }
const SUBJECT = 'user:1'

const aliases = (count: number) =>
  `{ ${Array.from({ length: count }, (_, index) => `a${index}: login(code: ${index})`).join(' ')} }`
const call = (id: number) => ({ jsonrpc: '2.0', method: 'login', params: [id], id })
const many = <Item>(count: number, item: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => item(index))

/** Bodies with `count` operations each. */
const KINDS: Readonly<Record<string, (count: number) => { path: string; body: unknown }>> = {
  'GraphQL aliases': count => ({ path: '/graphql', body: { query: aliases(count) } }),
  'a GraphQL batch': count => ({ path: '/graphql', body: many(count, () => ({ query: '{ me }' })) }),
  'a JSON-RPC batch': count => ({ path: '/rpc', body: many(count, call) }),
}

async function startExpress() {
  const limiter = createLimiter({ policies })
  const app = express()
  const limit = (cost: (body: unknown) => number) =>
    rateLimit({ limiter, policy: 'operations', subject: SUBJECT, cost: req => cost(req.body) })
  app.use(express.json({ limit: '1mb' }))
  app.post('/graphql', limit(graphqlCost), (_, res) => void res.json({ data: {} }))
  app.post('/rpc', limit(jsonRpcCost), (_, res) => void res.json([]))
  return listening(createServer(app))
}

/** Creates a fetch handler, called without a server. The body is read once, before the limit. */
function createFetchHandler() {
  const limiter = createLimiter({ policies })
  const bodies = new WeakMap<Request, unknown>()
  const limited = rateLimitFetch({
    limiter,
    policy: 'operations',
    subject: () => SUBJECT,
    cost: request => {
      const body = bodies.get(request)
      return request.url.endsWith('/rpc') ? jsonRpcCost(body) : graphqlCost(body)
    },
  })(() => Response.json({ data: {} }))
  return async (request: Request) => {
    bodies.set(request, await request.json())
    return limited(request)
  }
}

interface Server {
  ask(path: string, body: unknown): Promise<Response>
  close(): Promise<void> | void
}

const SERVERS: Readonly<Record<string, () => Promise<Server>>> = {
  async Express() {
    const { url, close } = await startExpress()
    return { ask: (path, body) => fetch(new URL(path, url), post(body)), close }
  },
  async 'a fetch handler'() {
    const handle = createFetchHandler()
    return { ask: (path, body) => handle(new Request(`http://a.example${path}`, post(body))), close() {} }
  },
}

function post(body: unknown): RequestInit {
  return { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}

describe.each(Object.entries(SERVERS))('on %s', (_, start) => {
  it.each(Object.entries(KINDS))(
    '%s of 40 operations take 40 units, and one of 1,000 is rejected for good',
    async (_name, kindOf) => {
      const server = await start()
      const ask = async (count: number) => {
        const { path, body } = kindOf(count)
        const response = await server.ask(path, body)
        return { status: response.status, left: response.headers.get('x-ratelimit-remaining'), response }
      }
      expect(await ask(40)).toMatchObject({ status: 200, left: '60' })
      const huge = await ask(1_000)
      expect(huge.status).toBe(429)
      expect(huge.response.headers.get('retry-after')).toBeNull()
      expect(await huge.response.json()).toMatchObject({ retryAfterMs: null })
      expect(await ask(60)).toMatchObject({ status: 200, left: '0' })
      expect((await ask(1)).status).toBe(429)
      await server.close()
    },
  )
})
