/** Resets beside the previous version: neither gives back what was charged before one that the other made. */

import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.ts'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket.ts'
import type { Check, Refund } from '../../src/check/check.ts'
import { askStore } from '../../src/store/ask-store.ts'
import { redisStore } from '../../src/store/redis/redis-store.ts'
import type { Store } from '../../src/store/store.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { asPrevious, type PreviousModule, unpackPrevious } from './previous.ts'

const LIMITS: readonly Limit[] = [
  slidingWindowLog({ limit: 10, window: '1h' }),
  slidingWindowCounter({ limit: 10, window: '1h' }),
  slidingWindowCounter({ limit: 10, window: '1h', buckets: 6 }),
  tokenBucket({ capacity: 10, refillPerSecond: 0.001 }),
]

let server: RedisProcess
let previous: Store
let previousModule: PreviousModule
let current: Store
let remove: () => Promise<void>

beforeAll(async () => {
  server = await startRedis()
  const unpacked = await unpackPrevious()
  remove = unpacked.remove
  const module = (await import(unpacked.path)) as PreviousModule
  previousModule = module
  const open = async (make: typeof redisStore): Promise<Store> => {
    const client = new Redis({ port: server.port, lazyConnect: true })
    const store = make(client, { deadlineMs: 10_000, denyCache: false, onStoreFailure: 'throw' })
    await store.ready()
    return store
  }
  previous = await open(module.redisStore)
  current = await open(redisStore)
})
afterAll(async () => {
  await previous?.close()
  await current?.close()
  await remove?.()
  await server?.stop()
})

async function charge(store: Store, check: Check, cost: number): Promise<Refund | null> {
  const ask = store === previous ? previousModule.askStore : askStore
  const { verdicts } = await ask(store, { alternatives: [[{ ...check, cost }]], shadow: [] })
  const chargedAtUs = verdicts[0]?.[0]?.chargedAtUs ?? null
  return chargedAtUs === null ? null : { check, units: cost, chargedAtUs }
}

describe.each(LIMITS)('$id', limit => {
  const checkOf = (subject: string): Check => ({ subject, scope: 'global', name: 'p.x', limit, cost: 1 })

  it('a state that this version has reset is counted by both', async () => {
    const check = checkOf(`user:new-${limit.id}`)
    const former = { ...((await charge(previous, asPrevious(check, previousModule), 3)) as Refund), check }
    await current.reset([check])
    expect(await charge(previous, asPrevious(check, previousModule), 6)).not.toBeNull()
    expect(await charge(current, check, 4)).not.toBeNull()
    expect(await charge(previous, asPrevious(check, previousModule), 1)).toBeNull()
    expect(await current.refund([former])).toEqual([0])
    expect(await charge(current, check, 1)).toBeNull()
  })

  it('a state that the previous version has reset is counted by both', async () => {
    const check = checkOf(`user:old-${limit.id}`)
    await charge(current, check, 3)
    await current.reset([check])
    await previous.reset([asPrevious(check, previousModule)])
    expect(await charge(current, check, 6)).not.toBeNull()
    expect(await charge(previous, asPrevious(check, previousModule), 4)).not.toBeNull()
    expect(await charge(current, check, 1)).toBeNull()
    const after = await charge(previous, asPrevious(check, previousModule), 1)
    expect(after).toBeNull()
  })
})
