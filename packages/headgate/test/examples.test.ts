import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../src/config.js'
import { compileExamples } from './support/compiled-examples.ts'

const folder = await compileExamples()
const compiled = (file: string): URL => pathToFileURL(join(folder, file))

it('the fetch example lets five requests of a key pass, and another key still', async () => {
  const example = compiled('fetch/worker.js').href
  const { default: worker } = (await import(example)) as {
    default: { fetch(request: Request): Promise<Response> }
  }
  const ask = async (key: string): Promise<number> =>
    (await worker.fetch(new Request('http://localhost/', { headers: { 'x-api-key': key } }))).status
  const statuses: number[] = []
  for (let time = 0; time < 6; time++) statuses.push(await ask('one'))
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
  expect(await ask('two')).toBe(200)
})

it.each([
  ['express', compiled('express/app.js')],
  ['fastify', compiled('fastify/app.js')],
  ['hono', compiled('hono/app.js')],
  ['koa', compiled('koa/app.js')],
])(
  'the %s example lets five requests of an address pass, and two logins',
  async (name, { href: example }) => {
    const { start } = (await import(example)) as { start(port: number): Promise<Server> }
    const server = await start(0)
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const ask = async (method: string, path: string, times: number): Promise<number[]> => {
      const statuses: number[] = []
      for (let time = 0; time < times; time++) statuses.push((await fetch(url + path, { method })).status)
      return statuses
    }
    try {
      expect(await ask('POST', '/login', 3)).toEqual([200, 200, 429])
      expect(await ask('GET', '/', 6)).toEqual([200, 200, 200, 200, 200, 429])
      if (name === 'fastify') expect(await ask('GET', '/health', 7)).toEqual(Array(7).fill(200))
    } finally {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    }
  },
)

it('the better-auth example lets five requests of an address to a path pass', async () => {
  const example = compiled('better-auth/app.js').href
  const { auth } = (await import(example)) as { auth: { handler(request: Request): Promise<Response> } }
  const statuses: number[] = []
  for (let time = 0; time < 6; time++)
    statuses.push((await auth.handler(new Request('http://127.0.0.1:3000/api/auth/ok'))).status)
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
})

it('the mcp example lets five calls of a tool pass', async () => {
  const example = fileURLToPath(compiled('mcp/app.js'))
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [example] }))
  for (let time = 0; time < 5; time++) await client.callTool({ name: 'time' })
  await expect(client.callTool({ name: 'time' })).rejects.toMatchObject({ code: -32_029 })
  await client.close()
})

describe('the llm-proxy example', () => {
  type Start = (port: number, ...rest: unknown[]) => Promise<Server>
  const example = compiled('llm-proxy/app.js').href
  const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  async function withProxy(
    work: (ask: (user: string, prompt: string, maxTokens: number) => Promise<Response>) => Promise<void>,
  ) {
    const { startModel, startProxy } = (await import(example)) as { startModel: Start; startProxy: Start }
    const model = await startModel(0, 1)
    const proxy = await startProxy(0, urlOf(model))
    const url = urlOf(proxy)
    try {
      await work((user, prompt, maxTokens) =>
        fetch(url, {
          method: 'POST',
          headers: { 'x-user': user },
          body: JSON.stringify({ prompt, maxTokens }),
        }),
      )
    } finally {
      for (const server of [proxy, model]) {
        server.closeAllConnections()
        await new Promise(resolve => server.close(resolve))
      }
    }
  }
  const denied = async (response: Response) => {
    const problem = (await response.json()) as { 'violated-policies': string[] }
    return [response.status, problem['violated-policies']]
  }

  it('the llm-proxy example charges what a stream took, not what was reserved for it', () =>
    withProxy(async ask => {
      const first = await ask('ada', 'short please', 900)
      expect((await first.text()).match(/token/g)).toHaveLength(10)
      const second = await ask('ada', 'short again', 900)
      expect(second.status).toBe(200)
      await second.text()
      expect(await denied(await ask('ada', 'too much', 1_000))).toEqual([429, ['model.tokens-log-1m']])
    }))

  it('the llm-proxy example allows two streams at once, and another when one has ended', () =>
    withProxy(async ask => {
      const streams = await Promise.all([ask('ada', 'one', 100), ask('ada', 'two', 100)])
      expect(streams.map(({ status }) => status)).toEqual([200, 200])
      expect(await denied(await ask('ada', 'three', 100))).toEqual([429, ['model.concurrency']])
      for (const stream of streams) await stream.text()
      expect((await ask('ada', 'short', 100)).status).toBe(200)
    }))

  it('the llm-proxy example allows five requests a minute, and another user as many', () =>
    withProxy(async ask => {
      for (let time = 0; time < 5; time++) await (await ask('ada', 'short', 20)).text()
      expect(await denied(await ask('ada', 'short', 20))).toEqual([429, ['model.requests-log-1m']])
      expect((await ask('bob', 'short', 20)).status).toBe(200)
    }))
})

it('the trpc example lets five calls of a user pass, and two exports', async () => {
  const example = compiled('trpc/app.js').href
  const { start } = (await import(example)) as { start(port: number): Promise<Server> }
  const server = await start(0)
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const statuses = async (path: string, init: RequestInit, times: number): Promise<number[]> => {
    const all: number[] = []
    for (let time = 0; time < times; time++) all.push((await fetch(url + path, init)).status)
    return all
  }
  try {
    expect(await statuses('/hello', {}, 6)).toEqual([200, 200, 200, 200, 200, 429])
    expect(
      await statuses('/export', { method: 'POST', headers: { 'content-type': 'application/json' } }, 3),
    ).toEqual([200, 200, 429])
    expect(await statuses('/hello', { headers: { 'x-user': 'else' } }, 1)).toEqual([200])
  } finally {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
  }
})

it('the degradation example shows what callers get while the store is frozen', async () => {
  const example = fileURLToPath(compiled('degradation/degradation.test.js'))
  const { stdout } = await promisify(execFile)(process.execPath, ['--test', '--test-reporter=tap', example])
  expect(stdout).toMatch(/^# pass 1$/m)
  expect(stdout).toMatch(/^# fail 0$/m)
})

it('the policy-file example limits logins as its file says, and as the file says after it changed', async () => {
  const own = mkdtempSync(join(tmpdir(), 'headgate-example-'))
  const example = compiled('policy-file/app.js').href
  const { createApp } = (await import(example)) as {
    createApp(file: string): Promise<{ server: Server }>
  }
  const text = readFileSync(new URL('../../../examples/policy-file/headgate.yaml', import.meta.url), 'utf8')
  const file = join(own, 'headgate.yaml')
  writeFileSync(file, text)
  const { server } = await createApp(file)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const login = async (): Promise<number> => (await fetch(`${url}/login`, { method: 'POST' })).status
  try {
    const statuses: number[] = []
    for (let time = 0; time < 6; time++) statuses.push(await login())
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
    // Another spelling is the same route; a static file is not limited.
    expect((await fetch(`${url}/LOGIN/`, { method: 'POST' })).status).toBe(429)
    expect((await fetch(`${url}/style.css`)).headers.has('x-ratelimit-limit')).toBe(false)
    writeFileSync(file, text.replace('limit: 5, window: 1m', 'limit: 7, window: 1m'))
    await expect.poll(login).toBe(200)
    expect([await login(), await login()]).toEqual([200, 429])
  } finally {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
    rmSync(own, { recursive: true, force: true })
  }
})

// Files of other programs, such as Envoy and Traefik, are shown as `yml`.
describe('every policy file that the documentation shows is sound', () => {
  const guides = new URL('../../../docs/guide/', import.meta.url)
  const pages = [
    ...readdirSync(guides, { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.md'))
      .map(name => new URL(name, guides)),
    new URL('../../../README.md', import.meta.url),
  ]
  const shown = pages.flatMap(page =>
    [...readFileSync(page, 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g)].map(
      (match, index) => [`${page.pathname.split('/').at(-1)} ${index + 1}`, match[1] as string] as const,
    ),
  )

  it.each(shown)('the policy file that the documentation shows is sound: %s', async (_name, text) => {
    await expect(parseConfig(text, 'shown.yaml')).resolves.toBeDefined()
  })

  it('the documentation shows policy files', () => {
    expect(shown.length).toBeGreaterThan(5)
  })
})
