/**
 * Somebody else's data under one of our keys. The question about it fails alone with a code of its own; other
 * questions are answered, and the data stays as it was, to the byte and without a TTL.
 */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.ts'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket.ts'
import type { Check } from '../../src/check/check.ts'
import type { PendingCheck } from '../../src/check/pending-check.ts'
import { NOBODY_LISTENS } from '../../src/check/plan.ts'
import { Plans } from '../../src/check/plans.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import { askStore, type Question } from '../../src/store/ask-store.ts'
import { type CheckErrors, decodeChecks } from '../../src/store/redis/decode.ts'
import { encodeChecks } from '../../src/store/redis/encode.ts'
import type { RedisStore } from '../../src/store/redis/redis-store.ts'
import { StraightLines } from '../../src/store/redis/straight-line.ts'
import { redisKey } from '../../src/subject/key.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { openConnection, type RespConnection } from '../support/resp.ts'

const WINDOW_MS = 60_000
const KEY_ERROR = expect.objectContaining({ code: 'ERR_HEADGATE_STORE_KEY' })

let redis: RedisProcess
let client: Redis
let store: RedisStore
let connection: RespConnection

beforeAll(async () => {
  redis = await startRedis()
  client = new Redis(redis.port)
  store = directRedisStore(client, { deadlineMs: 10_000 })
  await store.ready()
  connection = await openConnection(redis.port)
})

afterAll(async () => {
  connection?.close()
  await store?.close()
  client?.disconnect()
  await redis?.stop()
})

/** A command that puts something under a key, without the key. */
type Poison = readonly [command: string, ...values: string[]]

const GARBAGE = ['', 'abc', 'nan', 'inf', '-1', '1e3', '1e400', '0x10', ' 5 ', '99999999999999999999']

/** Returns our fields, all but one of them well-formed. */
function spoiledHashes(fields: Readonly<Record<string, string>>): Poison[] {
  return Object.keys(fields).flatMap(spoiled => [
    ['HSET', ...Object.entries(fields).flatMap(([name, value]) => (name === spoiled ? [] : [name, value]))],
    ...GARBAGE.map(
      (garbage): Poison => ['HSET', ...Object.entries({ ...fields, [spoiled]: garbage }).flat()],
    ),
  ]) as Poison[]
}

const nowUs = Date.now() * 1000
const nowMs = Math.floor(nowUs / 1000)
const windowStart = String(nowMs - (nowMs % WINDOW_MS))

const FOREIGN: readonly Poison[] = [
  ['SET', 'a string'],
  ['RPUSH', 'a', 'list'],
  ['SADD', 'a', 'set'],
  ['XADD', '*', 'a', 'stream'],
]
const FOREIGN_HASHES: readonly Poison[] = [
  ['HSET', 'name', 'Ada', 'email', 'ada@example.org'],
  ['HSET', 'START', windowStart, 'Tokens', '5'],
]
const FOREIGN_SORTED_SETS: readonly Poison[] = [
  ['ZADD', '3', 'ada', '5', 'grace'],
  // A leaderboard of user ids, and a log of another limiter: numbers, but not ours.
  ['ZADD', '99', '1234', '250', '77'],
  ['ZADD', String(nowUs), String(nowUs), String(nowUs + 1), String(nowUs + 1)],
  ['ZADD', String(nowUs), `${nowUs}-0.123456`],
]

interface Row {
  readonly limit: Limit
  readonly poisons: readonly Poison[]
}

const ROWS: readonly Row[] = [
  {
    limit: slidingWindowLog({ limit: 10, window: '1m' }),
    poisons: [
      ...FOREIGN,
      ...FOREIGN_HASHES,
      ...FOREIGN_SORTED_SETS,
      ...[...GARBAGE, '12345678901234', '000000000000x'].map(
        (member): Poison => ['ZADD', String(nowUs), member],
      ),
      ...['1.5', 'inf', '-inf', '-5', '1e300'].map((score): Poison => ['ZADD', score, '0000000000005']),
      // The entry that is counted from is foreign, the last one is not.
      ['ZADD', '7', 'ada', String(nowUs), '0000000000005'],
    ],
  },
  {
    limit: slidingWindowCounter({ limit: 10, window: '1m' }),
    poisons: [
      ...FOREIGN,
      ...FOREIGN_HASHES,
      ...FOREIGN_SORTED_SETS,
      ...GARBAGE.map((text): Poison => ['SET', text]),
      ...[
        '1:2:3',
        '1:2:3:x',
        ':::',
        '-1:0:0:0',
        '1:2:3:4:5',
        '1000000000000000',
        '52.5',
        '0x2A',
        '007',
        '0001',
      ].map((text): Poison => ['SET', text]),
    ],
  },
  {
    limit: slidingWindowCounter({ limit: 10, window: '1m', buckets: 6 }),
    poisons: [
      ...FOREIGN,
      ...FOREIGN_HASHES,
      ...FOREIGN_SORTED_SETS,
      ...spoiledHashes({ start: windowStart, counts: '3,0,2' }),
      ['HSET', 'start', windowStart, 'counts', '3,-1'],
      ['HSET', 'start', windowStart, 'counts', '3,1.5'],
    ],
  },
  {
    limit: tokenBucket({ capacity: 10, refillPerSecond: 1 }),
    poisons: [
      ...FOREIGN,
      ...FOREIGN_HASHES,
      ...FOREIGN_SORTED_SETS,
      ...spoiledHashes({ tokens: '3.500000', lastRefill: String(nowUs), capacity: '10/1' }),
    ],
  },
]

let subjects = 0

function newCheck(limit: Limit): Check {
  return { subject: `user:${subjects++}`, scope: 'global', name: `proof.${limit.id}`, limit, cost: 1 }
}

function keyOf({ subject, scope, name }: Omit<Check, 'limit' | 'cost'>): string {
  return redisKey({ prefix: 'ratelimit', tenant: '', subject, scope, name })
}

async function poison(check: Check, [command, ...values]: Poison): Promise<void> {
  const reply = await connection.send(command, keyOf(check), ...values)
  expect(reply).not.toBeInstanceOf(Error)
}

/** Returns a digest of a key's type and value, and its TTL. */
async function fingerprint(check: Check): Promise<unknown[]> {
  const key = keyOf(check)
  return [
    await connection.send('DEBUG', 'DIGEST-VALUE', key),
    await connection.send('TYPE', key),
    await connection.send('PTTL', key),
  ]
}

/** Asks checks as those of one turn are. Returns the error of each. */
async function askTogether(checks: readonly PendingCheck[]): Promise<unknown[]> {
  const errors: CheckErrors = new Map()
  for (const call of encodeChecks(checks, false, new StraightLines(false, true), keyOf, '', true, nowUs)) {
    const { script, keys, args } = call
    const reply = await connection.send('EVAL', script.text, keys.length, ...keys, ...args)
    decodeChecks(reply, call, { nowUs: () => nowUs, learn() {} }, errors)
  }
  return checks.map(check => errors.get(check) ?? null)
}

const question = (...checks: Check[]): Question => ({ alternatives: [checks], shadow: [] })
const plans = new Plans(NOBODY_LISTENS)
const pending = (...checks: Check[]): PendingCheck => plans.pending(question(...checks))

describe.each(ROWS.map(row => ({ title: row.limit.id, ...row })))('$title', ({ limit, poisons }) => {
  it.each(poisons.map(entry => ({ poisoned: entry.join(' '), entry })))(
    'a script does not read, change or forget $poisoned',
    async ({ entry }) => {
      const check = newCheck(limit)
      await poison(check, entry)
      const before = await fingerprint(check)
      expect(before[2]).toBe(-1)
      const limiter = createLimiter({ store, policies: { proof: limit } })
      const subject = check.subject as `user:${string}`
      await expect(limiter.check(subject, { policy: 'proof' })).rejects.toEqual(KEY_ERROR)
      await expect(limiter.check(subject, { policy: 'proof', cost: 10 })).rejects.toEqual(KEY_ERROR)
      await expect(limiter.peek(subject, { policy: 'proof' })).rejects.toEqual(KEY_ERROR)
      expect(await store.refund([{ check, units: 1, chargedAtUs: null }])).toEqual([0])
      expect(await store.refund([{ check, units: 1, chargedAtUs: nowUs }])).toEqual([0])
      await limiter.reset(subject, { policy: 'proof' })
      expect(await fingerprint(check)).toEqual(before)
    },
  )

  it('a poisoned key leaves the other questions of the same call answered', async () => {
    const [first, poisoned, last] = [newCheck(limit), newCheck(limit), newCheck(limit)]
    await poison(poisoned, ['SET', 'a string'])
    const before = await fingerprint(poisoned)
    const [one, two, three, four] = [
      pending(first),
      pending(poisoned),
      pending(first, last),
      pending(poisoned),
    ] as const
    expect(await askTogether([one, two, three, four])).toEqual([null, KEY_ERROR, null, KEY_ERROR])
    expect([one.charged, one.left(0)]).toEqual([0, 9])
    expect([three.charged, three.left(0), three.left(1)]).toEqual([0, 8, 9])
    expect(await fingerprint(poisoned)).toEqual(before)
  })

  it('a poisoned key is left alone after a new key, after a known one and as the first of a call', async () => {
    const known = newCheck(limit)
    const poisoned = [newCheck(limit), newCheck(limit), newCheck(limit)]
    for (const check of poisoned) await poison(check, ['HSET', 'name', 'Ada'])
    const before = await Promise.all(poisoned.map(fingerprint))
    const [first, second, third] = poisoned as [Check, Check, Check]
    const asked = [first, known, second, known, third, newCheck(limit)].map(check => pending(check))
    expect(await askTogether(asked)).toEqual([KEY_ERROR, null, KEY_ERROR, null, KEY_ERROR, null])
    expect([1, 3, 5].map(index => asked[index]?.left(0))).toEqual([9, 8, 9])
    expect(await Promise.all(poisoned.map(fingerprint))).toEqual(before)
  })

  it('a question with a key that cannot be read charges nothing', async () => {
    const [healthy, poisoned] = [newCheck(limit), newCheck(limit)]
    await poison(poisoned, ['SET', 'a string'])
    for (const checks of [
      [healthy, poisoned],
      [poisoned, healthy],
    ]) {
      await expect(askStore(store, question(...checks))).rejects.toEqual(KEY_ERROR)
    }
    expect(await connection.send('EXISTS', keyOf(healthy))).toBe(0)
  })

  it('a request whose shadow check cannot be read passes', async () => {
    const [healthy, poisoned] = [newCheck(limit), newCheck(limit)]
    await poison(poisoned, ['SET', 'a string'])
    const before = await fingerprint(poisoned)
    const answer = await askStore(store, { alternatives: [[healthy]], shadow: [poisoned] })
    expect(answer).toMatchObject({ charged: 0, verdicts: [[{ remaining: 9 }]] })
    expect(answer.shadow[0]?.chargedAtUs).toBeNull()
    expect(await fingerprint(poisoned)).toEqual(before)
  })

  it('a reset still forgets what the scripts wrote themselves', async () => {
    const check = newCheck(limit)
    await askStore(store, question(check))
    expect(await askStore(store, question(check), true)).toMatchObject({ verdicts: [[{ remaining: 9 }]] })
    await store.reset([check])
    expect(await askStore(store, question(check), true)).toMatchObject({ verdicts: [[{ remaining: 10 }]] })
  })
})
