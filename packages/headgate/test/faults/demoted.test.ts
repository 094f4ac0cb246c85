/** A failover behind one address: the connection stays with the old primary, which has become a replica. */
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { expect, it, onTestFinished } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import type { StoreEvent } from '../../src/store/remote/store-event.js'
import { isReplicaInSync } from '../support/redis-info.ts'
import { startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'

const KEY = 'ratelimit:v2:{user:1}:global:api.log-1h'

it.each([
  ['ioredis', 'scripts'],
  ['ioredis', 'functions'],
  ['node-redis', 'scripts'],
  ['node-redis', 'functions'],
] as const)(
  'a question that a demoted primary rejected is sent once more, to the new one, and nobody notices (%s, %s)',
  async (library, use) => {
    const first = await startRedis()
    onTestFinished(() => first.stop())
    const second = await startRedis({ args: ['--replicaof', '127.0.0.1', String(first.port)] })
    onTestFinished(() => second.stop())
    await waitUntil('the replica is in sync', () => isReplicaInSync(second.port))
    const target = { port: first.port }
    const proxy = await startTcpProxy(target)
    onTestFinished(() => proxy.close())
    const url = `redis://127.0.0.1:${proxy.port}`
    const client = library === 'ioredis' ? new Redis(url, { lazyConnect: true }) : createClient({ url })
    const events: StoreEvent[] = []
    const store = redisStore(client, {
      use,
      deadlineMs: 1_000,
      logEveryMs: 86_400_000,
      onWarning: () => {},
      onEvent: event => events.push(event),
    })
    const limiter = createLimiter({
      store,
      policies: { api: slidingWindowLog({ limit: 1_000, window: '1h' }) },
    })
    onTestFinished(() => limiter.close())
    await store.ready()
    const ask = async () => (await limiter.check('user:1', { policy: 'api' })).source
    for (let call = 0; call < 5; call++) expect(await ask()).toBe('redis')
    // A new connection that leads to a replica is not replaced for a call.
    await new Promise(resolve => setTimeout(resolve, 1_100))
    await waitUntil(
      'the replica has it all',
      async () => (await sendCommand(second.port, 'ZCARD', KEY)) === 5,
    )

    target.port = second.port
    await sendCommand(second.port, 'REPLICAOF', 'NO', 'ONE')
    await sendCommand(first.port, 'REPLICAOF', '127.0.0.1', String(second.port))
    const sources = await Promise.all(Array.from({ length: 20 }, ask))
    for (let call = 0; call < 5; call++) sources.push(await ask())
    expect(new Set(sources)).toEqual(new Set(['redis']))
    expect(events).toEqual([])
    expect(await sendCommand(second.port, 'ZCARD', KEY)).toBe(30)
  },
)
