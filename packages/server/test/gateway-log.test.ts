import { Agent, request } from 'node:http'
import { slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import { afterEach, expect, it } from 'vitest'
import type { AccessEntry } from '../src/log/server-log.js'
import { startRawUpstream } from './support/raw-upstream.js'
import { startGateway } from './support/test-gateway.js'

const ADDRESSES = 1_000
const AT_ONCE = 50
const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

it(`a flood of ${ADDRESSES} denied addresses writes ten lines a second, and how many more there were`, async () => {
  const upstream = await startRawUpstream()
  const gateway = await startGateway(upstream.url, { limit: 0, trustedProxies: ['127.0.0.1'] })
  closers.push(upstream.close, gateway.close)
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
  const ask = (index: number) =>
    new Promise<number>((resolve, reject) => {
      const headers = { 'X-Forwarded-For': `203.0.${index >> 8}.${index & 255}` }
      request(gateway.url, { agent, headers }, answer => resolve(answer.resume().statusCode ?? 0))
        .on('error', reject)
        .end()
    })
  const began = performance.now()
  const statuses = await Promise.all(Array.from({ length: ADDRESSES }, (_, index) => ask(index)))
  expect(new Set(statuses)).toEqual(new Set([429]))
  const seconds = Math.ceil((performance.now() - began) / 1_000) + 1
  agent.destroy()

  const leftOut = () =>
    gateway.logged.flatMap(line => {
      const found = /^(\d+) more like these in the last second$/.exec(line)
      return found === null ? [] : [Number(found[1])]
    })
  const told = () => gateway.logged.filter(line => line.startsWith('429 for ip:203.0.')).length
  await expect.poll(() => told() + leftOut().reduce((sum, count) => sum + count, 0)).toBe(ADDRESSES)
  expect(gateway.logged.length).toBe(told() + leftOut().length)
  expect(told()).toBeLessThanOrEqual(10 * seconds)
})

it('a denial names whoever was charged, and the access log the client behind the proxy', async () => {
  const upstream = await startRawUpstream()
  const config = defineConfig({
    policies: { api: slidingWindowLog({ limit: 0, window: '1m' }) },
    default: { policy: 'api' },
    identify: [{ user: { header: 'x-user', from: ['127.0.0.1'] } }, { ip: {} }],
    trustedProxies: ['127.0.0.1'],
  })
  const entries: AccessEntry[] = []
  const gateway = await startGateway(upstream.url, { config, onAccess: entry => entries.push(entry) })
  closers.push(upstream.close, gateway.close)
  const headers = { 'X-User': '42', 'X-Forwarded-For': '203.0.113.9' }
  expect((await fetch(gateway.url, { headers })).status).toBe(429)
  expect(gateway.logged[0]).toMatch(/^429 for user:42: policy api allows 0 a minute/)
  await expect
    .poll(() => entries)
    .toMatchObject([{ client: '203.0.113.9', status: 429, id: expect.any(String) }])
})

it('a flood of denials does not keep an upstream that is down out of the log', async () => {
  const upstream = await startRawUpstream()
  await upstream.close()
  const config = defineConfig({
    policies: { ban: slidingWindowLog({ limit: 0, window: '1m' }) },
    rules: [{ match: { path: '/banned' }, policy: 'ban' }],
    trustedProxies: ['127.0.0.1'],
  })
  const gateway = await startGateway(upstream.url, { config })
  closers.push(gateway.close)
  const ask = (path: string, address: string) =>
    fetch(`${gateway.url}${path}`, { headers: { 'X-Forwarded-For': address } })
  // More than are logged in a second.
  const denied = await Promise.all(
    Array.from({ length: 20 }, (_, index) => ask('/banned', `203.0.113.${index}`)),
  )
  expect(new Set(denied.map(({ status }) => status))).toEqual(new Set([429]))
  // These callers' tier is another one than the rule's policy, which denied.
  expect(gateway.logged[0]).toMatch(/^429 for ip:203\.0\.113\.\d+: policy ban allows 0 a minute; /)
  expect((await ask('/', '198.51.100.1')).status).toBe(502)
  expect(gateway.logged.filter(line => line.startsWith('502: upstream'))).toHaveLength(1)
})
