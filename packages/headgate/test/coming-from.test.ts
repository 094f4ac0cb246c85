/** Runs the programs of the pages about other limiters as they are: before and after, they limit the same. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import type { Express } from 'express'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisProcess, startRedis } from './support/redis-process.ts'
import { type RestFront, startRestFront } from './support/rest-front.ts'
import { runShown } from './support/shown-program.ts'

let redis: RedisProcess
let front: RestFront
beforeAll(async () => {
  redis = await startRedis()
  front = await startRestFront(redis.port)
  process.env.UPSTASH_REDIS_REST_URL = front.url
  process.env.UPSTASH_REDIS_REST_TOKEN = front.token
})
afterAll(async () => {
  await front.close()
  await redis.stop()
})

/** Returns the exports of the program below `Before:` or `After:` on a page. */
function run<Exports>(page: string, side: 'Before' | 'After'): Promise<Exports> {
  return runShown(`coming-from/${page}.md`, `\n${side}:\n`)
}

type Ask = (path: string, init?: RequestInit) => Promise<Response>

/** Returns an app's answers to user 1 and user 2 on three routes. */
async function answersOf(ask: Ask): Promise<unknown> {
  const statuses = async (user: string, requests: readonly (readonly [string, string])[]) => {
    const found: number[] = []
    for (const [method, path] of requests)
      found.push((await ask(path, { method, headers: { 'x-user': user } })).status)
    return found
  }
  const times = (count: number, method: string, path: string) =>
    Array.from({ length: count }, () => [method, path] as const)
  return {
    hello: await statuses('1', times(5, 'GET', '/')),
    login: await statuses('1', times(2, 'POST', '/login')),
    health: await statuses('1', times(5, 'GET', '/health')),
    other: await statuses('2', times(1, 'GET', '/')),
  }
}

describe.each(['Before', 'After'] as const)('%s', side => {
  it('the programs of the page about express-rate-limit run as it says', async () => {
    const { app } = await run<{ app: Express }>('express-rate-limit', side)
    const server = createServer(app).listen(0, '127.0.0.1')
    await new Promise(resolve => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    try {
      const found: unknown[] = []
      for (const user of ['a', 'a', 'a', 'b']) {
        const { status, headers } = await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-user': user } })
        found.push([status, headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')])
      }
      expect(found).toEqual([
        [200, '2', '1'],
        [200, '2', '0'],
        [429, '2', '0'],
        [200, '2', '1'],
      ])
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  it('the programs of the page about rate-limiter-flexible run as it says', async () => {
    interface Logins {
      mayLogIn(account: string): Promise<boolean>
      loggedIn(account: string): Promise<void>
    }
    const { mayLogIn, loggedIn } = await run<Logins>('rate-limiter-flexible', side)
    const tries: boolean[] = []
    for (let time = 0; time < 6; time++) tries.push(await mayLogIn('ada'))
    expect(tries).toEqual([true, true, true, true, true, false])
    expect(await mayLogIn('grace')).toBe(true)
    await loggedIn('ada')
    expect(await mayLogIn('ada')).toBe(true)
  })

  it('the programs of the page about @upstash/ratelimit run as it says', async () => {
    const { handle } = await run<{ handle(request: Request): Promise<Response> }>('upstash-ratelimit', side)
    const found: unknown[] = []
    for (const user of ['a', 'a', 'a', 'a', 'b']) {
      const response = await handle(new Request('http://localhost/', { headers: { 'x-user': user } }))
      found.push([response.status, await response.text()])
    }
    expect(found).toEqual([
      ...Array.from({ length: 3 }, () => [200, 'hello']),
      [429, 'slow down'],
      [200, 'hello'],
    ])
  })

  it('the programs of the page about @fastify/rate-limit run as it says', async () => {
    const { app } = await run<{ app: FastifyInstance }>('fastify-rate-limit', side)
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    try {
      expect(await answersOf((path, init) => fetch(url + path, init))).toEqual(THREE_AND_ONE_LOGIN)
    } finally {
      await app.close()
    }
  })

  it('the programs of the page about @nestjs/throttler run as it says', async () => {
    const { AppModule } = await run<{ AppModule: new () => object }>('nestjs-throttler', side)
    const app = await NestFactory.create(AppModule, new ExpressAdapter(), { logger: false })
    await app.listen(0, '127.0.0.1')
    const url = await app.getUrl()
    try {
      expect(await answersOf((path, init) => fetch(url + path, init))).toEqual(THREE_AND_ONE_LOGIN)
    } finally {
      await app.close()
    }
  })
})

it('the program with a limit that is a function runs as the page about express-rate-limit says', async () => {
  const page = 'coming-from/express-rate-limit.md'
  const { app } = await runShown<{ app: Express }>(page, '### A limit that is a function')
  const server = createServer(app).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const ask = async (user: string, plan: string) => {
    const headers = { 'x-user': user, 'x-plan': plan }
    return (await fetch(`http://127.0.0.1:${port}/`, { headers })).status
  }
  try {
    expect([await ask('a', 'free'), await ask('a', 'free'), await ask('a', 'free')]).toEqual([200, 429, 429])
    // The denied ones did not count.
    expect([await ask('a', 'pro'), await ask('a', 'pro'), await ask('a', 'pro')]).toEqual([200, 200, 429])
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

const THREE_AND_ONE_LOGIN = {
  hello: [200, 200, 200, 429, 429],
  login: [200, 429],
  health: [200, 200, 200, 200, 200],
  other: [200],
}
