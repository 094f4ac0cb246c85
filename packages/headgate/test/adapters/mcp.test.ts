import { createServer } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { McpError } from '@modelcontextprotocol/sdk/types.js'
import { expect, it } from 'vitest'
import { concurrency, createLimiter } from '../../src/index.ts'
import { limitTools, type McpOptions, RATE_LIMITED } from '../../src/mcp.ts'
import { keepLines } from '../support/kept-lines.ts'
import { listening } from './listening.ts'

const logger = keepLines().logger
const text = (said: string) => ({ content: [{ type: 'text' as const, text: said }] })

/** A server with two tools; `slow` answers when it is told to, or cancelled. */
function serverOf() {
  const server = new McpServer({ name: 'tools', version: '1' })
  const waiting: (() => void)[] = []
  server.registerTool('hello', {}, () => text('hello'))
  server.registerTool('other', {}, () => text('other'))
  server.registerTool('slow', {}, () => new Promise(resolve => waiting.push(() => resolve(text('slow')))))
  return { server, waiting }
}

async function connected(options: McpOptions<string, string>) {
  const { server, waiting } = serverOf()
  const [ofClient, ofServer] = InMemoryTransport.createLinkedPair()
  const client = new Client({ name: 'client', version: '1' })
  await Promise.all([server.connect(limitTools(ofServer, { logger, ...options })), client.connect(ofClient)])
  return { client, waiting, call: (name: string) => client.callTool({ name }) }
}

const errorOf = (call: Promise<unknown>): Promise<McpError> =>
  call.then(
    () => Promise.reject(new Error('it passed')),
    error => error,
  )

it('each tool has a budget, and a refused call is a JSON-RPC error with the time to come back', async () => {
  const { client, call } = await connected({ limit: 2, window: '1m' })
  for (let time = 0; time < 2; time++) expect(await call('hello')).toMatchObject(text('hello'))
  const error = await errorOf(call('hello'))
  expect(error.code).toBe(RATE_LIMITED)
  expect(error.message).toContain('Limit of 2 requests per 1m')
  const { retryAfterMs } = error.data as { retryAfterMs: number }
  expect(retryAfterMs).toBeGreaterThan(58_000)
  expect(retryAfterMs).toBeLessThanOrEqual(60_000)
  expect(await call('other')).toMatchObject(text('other'))
  // Whatever is no call of a tool is not limited.
  for (let time = 0; time < 5; time++) expect((await client.listTools()).tools).toHaveLength(3)
})

it('a permit is given back when a tool has answered, or the call was cancelled', async () => {
  const limiter = createLimiter({ policies: { one: concurrency({ limit: 1 }) } })
  const { client, waiting, call } = await connected({ limiter, policy: 'one', scope: 'all' })
  const first = call('slow')
  await expect.poll(() => waiting.length).toBe(1)
  expect((await errorOf(call('hello'))).code).toBe(RATE_LIMITED)
  waiting[0]?.()
  await first
  expect(await call('hello')).toMatchObject(text('hello'))
  const abort = new AbortController()
  const cancelled = client.callTool({ name: 'slow' }, undefined, { signal: abort.signal })
  await expect.poll(() => waiting.length).toBe(2)
  abort.abort()
  await expect(cancelled).rejects.toThrow()
  await expect
    .poll(async () =>
      call('hello').then(
        () => 'passed',
        () => 'denied',
      ),
    )
    .toBe('passed')
})

it('over HTTP, callers are told apart by their token, or as subject says', async () => {
  const limiter = createLimiter({ policies: { api: concurrency({ limit: 100 }) } })
  for (const [options, callers] of [
    [{ limit: 1, window: '1m' }, ['a', 'b']],
    [{ limiter, policy: 'api', subject: ({ headers }) => `user:${headers['x-user']}` }, ['a', 'b']],
  ] satisfies [McpOptions<string, string>, string[]][]) {
    const { server } = serverOf()
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: () => 'one' })
    await server.connect(limitTools(transport, { logger, ...options } as McpOptions<string, string>))
    const http = await listening(
      createServer((req, res) => {
        const clientId = String(req.headers['x-user'])
        void transport.handleRequest(Object.assign(req, { auth: { token: '', clientId, scopes: [] } }), res)
      }),
    )
    const client = new Client({ name: 'client', version: '1' })
    let user = ''
    const asUser: typeof fetch = (url, init) => {
      const headers = new Headers(init?.headers)
      headers.set('x-user', user)
      return fetch(url, { ...init, headers })
    }
    await client.connect(new StreamableHTTPClientTransport(new URL(http.url), { fetch: asUser }) as never)
    for (user of callers) {
      expect(await client.callTool({ name: 'hello' })).toMatchObject(text('hello'))
      if ('limit' in options)
        expect((await errorOf(client.callTool({ name: 'hello' }))).code).toBe(RATE_LIMITED)
    }
    await client.close()
    await http.close()
  }
})
