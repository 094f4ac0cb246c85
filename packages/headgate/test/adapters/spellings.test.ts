/** With `perRoute`, every spelling that a framework routes to a handler is charged to that route's budget. */
import { request } from 'node:http'
import { expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import { ADAPTERS } from './apps.ts'

const TARGETS = [
  '/hello',
  '/hello/',
  '/hello//',
  '/HELLO',
  '/Hello/',
  '/%68ello',
  '/%48ELLO',
  '/./hello',
  '/a/../hello',
  '/a/%2e%2e/hello',
  '//hello',
  '///hello',
  '/hello;a=b',
  '/hello%2f',
  '/hello%00',
  '/hello%20',
  '/hello.',
  '/hello?',
  '/hello?x=1',
  '/hello?x=/y',
  '/hello#f',
  '/hello/?x',
  'http://elsewhere.example/hello',
  'http://elsewhere.example/hello?x',
  '/hello%3fx',
  '/\\hello',
  '/hello\\',
  '/h%65llo/',
  '/x/..//hello',
]
const METHODS = ['GET', 'POST', 'HEAD', 'OPTIONS', 'PUT', 'PROPFIND', 'TRACE']

/** Returns the status of a target sent exactly as written. */
function ask(url: string, method: string, path: string): Promise<number> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, method, path, agent: false }, response => {
      resolve(response.resume().statusCode ?? 0)
    })
    sent.on('error', reject).end()
  })
}

it.each(['express 5', 'express 4', 'fastify', 'koa', 'hono'])(
  'no spelling of a path gets past a rule in %s',
  async name => {
    const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 10_000, window: '1h' }) } })
    const { url, close } = await (ADAPTERS[name] as (typeof ADAPTERS)[string]).serve({
      limits: [{ limiter, policy: 'api', subject: 'user:1', perRoute: true }],
      limited: 'routes',
      beginsEarly: false,
      handle: () => 'hello',
    })
    let hits = 0
    for (const method of METHODS) {
      for (const target of TARGETS) if ((await ask(url, method, target)) === 200) hits++
    }
    await close()
    const { remaining } = await limiter.peek('user:1', { policy: 'api', scope: '/hello' })
    expect(hits).toBeGreaterThan(20)
    expect(10_000 - remaining).toBe(hits)
  },
)
