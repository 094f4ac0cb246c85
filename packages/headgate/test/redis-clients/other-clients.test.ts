import { Redis as Upstash } from '@upstash/redis'
import { createClient as createVercelClient } from '@vercel/kv'
import { Redis as Valkey, Cluster as ValkeyCluster } from 'iovalkey'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askStore } from '../../src/store/ask-store.ts'
import { isIoredis } from '../../src/store/redis/clients/ioredis.js'
import { isNodeRedis } from '../../src/store/redis/clients/node-redis.js'
import type { RedisStore } from '../../src/store/redis/redis-store.ts'
import { storeContract } from '../../src/testing/store-contract.js'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { startSentinel } from '../support/redis-sentinel.ts'
import { sendCommand } from '../support/resp.ts'
import { type RestFront, startRestFront } from '../support/rest-front.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'
import { expectToWork } from './expect-to-work.ts'
import { one } from './questions.ts'
import { countCharges } from './server-count.ts'
import { MODES } from './topologies.ts'

let server: RedisProcess
let cluster: RedisCluster
beforeAll(async () => {
  server = await startRedis()
  cluster = await startCluster({ primaries: 3, replicasPerPrimary: 0 })
})
afterAll(async () => {
  await server.stop()
  await cluster.stop()
})

describe('iovalkey', () => {
  it('iovalkey is recognised as a fork of ioredis', () => {
    for (const client of [
      new Valkey({ lazyConnect: true }),
      new ValkeyCluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true }),
    ]) {
      expect([isIoredis(client), isNodeRedis(client)]).toEqual([true, false])
      client.disconnect()
    }
  })

  describe('keeps the contract', () => {
    const tests = storeContract({
      shared: true,
      open: clock =>
        directRedisStore(new Valkey({ port: server.port, lazyConnect: true }), {
          deadlineMs: 5_000,
          testClockUs: clock.nowUs,
        }),
    })
    for (const { name, run } of tests) it(name, run)
  })

  it.each(MODES)('iovalkey works on a cluster by %s', async use => {
    const nodes = cluster.primaries.map(({ host, port }) => ({ host, port }))
    const store = directRedisStore(new ValkeyCluster(nodes, { lazyConnect: true }), {
      use,
      deadlineMs: 5_000,
    })
    await expectToWork(store, `user:valkey-${use}`)
    await store.close()
  })

  it('iovalkey works behind sentinels', async () => {
    const { masterName: name, sentinels, stop } = await startSentinel({ replicas: 1, sentinels: 1 })
    const client = new Valkey({ name, sentinels: [...sentinels], lazyConnect: true })
    const store = directRedisStore(client, { deadlineMs: 5_000 })
    await expectToWork(store, 'user:valkey')
    await store.close()
    await stop()
  })

  it('iovalkey charges once when the reply is lost', async () => {
    const proxy = await startTcpProxy(server)
    const store = directRedisStore(new Valkey({ port: proxy.port, lazyConnect: true }), { deadlineMs: 100 })
    await store.ready()
    await askStore(store, one('user:warm-up'))
    for (let round = 0; round < 5; round++) {
      proxy.dropReplies({ thenResetAfterMs: 5 })
      const calls = Array.from({ length: 10 }, (_, call) =>
        askStore(store, one(`user:valkey-${round}-${call}`)),
      )
      expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual(
        calls.map(() => 'rejected'),
      )
      proxy.forward()
      await waitUntil('it answers again', async () => Boolean(await askStore(store, one('user:back'), true)))
    }
    await store.close()
    await proxy.close()
    const counts = [...(await countCharges([server.port]))].filter(([key]) => key.includes('{user:valkey-'))
    expect(counts.filter(([, count]) => count !== 1)).toEqual([])
    expect(counts.length).toBeGreaterThan(25)
  })
})

describe('an HTTP client in the dialect of Upstash and Vercel KV', () => {
  let front: RestFront
  beforeAll(async () => {
    front = await startRestFront(server.port)
  })
  afterAll(() => front.close())

  function open(options: object = {}, deadlineMs = 5_000, testClockUs?: () => number): RedisStore {
    const redis = new Upstash({ url: front.url, token: front.token, ...options })
    return directRedisStore(redis, { deadlineMs, ...(testClockUs && { testClockUs }) })
  }

  it.each([
    ['@upstash/redis', () => new Upstash({ url: front.url, token: front.token })],
    ['@vercel/kv', () => createVercelClient({ url: front.url, token: front.token })],
  ])(
    'the HTTP client of %s is taken as it is, and charges once what it would send again',
    async (name, make) => {
      const store = directRedisStore(make(), { deadlineMs: 5_000 })
      await expectToWork(store, `user:${name}`)
      const before = front.requests
      front.loseReplies(1)
      await expect(askStore(store, one(`user:${name} lost`))).rejects.toMatchObject({
        code: 'ERR_HEADGATE_STORE',
      })
      expect(front.requests - before).toBe(1)
    },
  )

  describe('keeps the contract', () => {
    const tests = storeContract({ shared: true, open: clock => open({}, 5_000, clock.nowUs) })
    for (const { name, run } of tests) it(name, run)
  })

  it.each([
    ['one request a command', { enableAutoPipelining: false }],
    ['replies not taken apart', { automaticDeserialization: false }],
    ['replies not in base64', { responseEncoding: false }],
  ])('an HTTP client works with %s', async (how, options) => {
    await expectToWork(open(options), `user:rest ${how}`)
  })

  it.each([true, false])(
    'an HTTP client runs a script the server has forgotten, batched: %s',
    async enableAutoPipelining => {
      const store = open({ enableAutoPipelining })
      await sendCommand(server.port, 'SCRIPT', 'FLUSH')
      const answers = await Promise.all([
        askStore(store, one('user:rest-a')),
        askStore(store, one('user:rest-b')),
      ])
      expect(answers.map(({ charged }) => charged)).toEqual([0, 0])
    },
  )

  it('an HTTP client charges once when the reply is lost', async () => {
    const store = open()
    await askStore(store, one('user:rest-warm-up'))
    front.loseReplies(1)
    await expect(askStore(store, one('user:rest-lost'))).rejects.toMatchObject({ code: 'ERR_HEADGATE_STORE' })
    expect((await askStore(store, one('user:rest-lost'), true)).verdicts[0]?.[0]?.remaining).toBe(999_999)
  })

  it('an HTTP client reports the server’s error, not what was sent', async () => {
    const store = open({ token: 'wrong-token', enableAutoPipelining: false })
    const error = await Promise.resolve(askStore(store, one('user:rest'))).catch((reason: Error) => reason)
    expect(error).toMatchObject({
      code: 'ERR_HEADGATE_STORE',
      message: 'redis: WRONGPASS invalid or missing auth token',
    })
    expect(String((error as Error).cause)).not.toContain('user:rest')
  })
})
