// A server that is out of memory, and says so or makes room.
import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis } from '../support/redis-process.ts'
import { openConnection, sendCommand } from '../support/resp.ts'
import { backAfterMs, flips, openLimiter, openLoop } from './measure.mjs'
import { atMost, exactly, info, time } from './rows.mjs'

const RPS = 2_000
const POLICIES = [
  'noeviction',
  ...['lru', 'lfu', 'random'].flatMap(which => [`allkeys-${which}`, `volatile-${which}`]),
  'volatile-ttl',
]
const SUBJECTS = 1_000

export async function outOfMemory(library) {
  const server = await startRedis()
  const opened = await openLimiter(library, server.port)
  const loop = openLoop(opened, RPS)
  await sleep(1_000)
  await sendCommand(server.port, 'CONFIG', 'SET', 'maxmemory', '1')
  const causedMs = performance.now()
  await sleep(2_000)
  const liftedMs = performance.now()
  await sendCommand(server.port, 'CONFIG', 'SET', 'maxmemory', '0')
  await sleep(1_500)
  const { results, rejected } = await loop.stop()
  await opened.close()
  await server.stop()
  const during = opened.states.filter(({ atMs }) => atMs >= causedMs && atMs < liftedMs)
  return [
    atMost('calls that threw', rejected, 0),
    atMost('times the breaker closed while it lasted', flips(during), 0),
    time('back on Redis', backAfterMs(results, liftedMs), 1_000),
  ]
}

/** Limits of a thousand subjects, then more cache entries than memory has room for. */
export async function eviction(library) {
  const rows = []
  for (const policy of POLICIES) {
    const server = await startRedis({ args: ['--maxmemory-policy', policy] })
    const opened = await openLimiter(library, server.port)
    let threw = 0
    const check = id => opened.limiter.check(`user:${id}`, { policy: 'countable' }).catch(() => threw++)
    for (let id = 0; id < SUBJECTS; id++) await check(id)
    await press(server.port)
    const left = await countKeys(server.port)
    await Promise.all(Array.from({ length: SUBJECTS }, (_, id) => check(id)))
    const isUnsafe = opened.store.health().evictionPolicyUnsafe
    await opened.close()
    await server.stop()
    const expected = policy === 'noeviction' ? 0 : 1
    const warned = opened.warnings.filter(code => code === 'WARN_HEADGATE_EVICTION_POLICY').length
    rows.push(
      atMost(`${policy}: calls that threw`, threw, 0),
      exactly(`${policy}: warnings`, warned, expected),
      exactly(`${policy}: said to be unsafe`, isUnsafe ? 'yes' : 'no', expected === 1 ? 'yes' : 'no'),
      info(`${policy}: limits left of ${SUBJECTS}`, left),
    )
  }
  return rows
}

/** Leaves room for half a megabyte more and writes five. */
async function press(port) {
  const connection = await openConnection(port)
  const used = /used_memory:(\d+)/.exec(String(await connection.send('INFO', 'memory')))?.[1]
  await connection.send('CONFIG', 'SET', 'maxmemory', String(Number(used) + 500_000))
  const value = 'x'.repeat(1_000)
  const writes = Array.from({ length: 5_000 }, (_, id) =>
    connection.send('SET', `cache:${id}`, value, 'EX', 600),
  )
  await Promise.all(writes)
  connection.close()
}

async function countKeys(port) {
  const keys = await sendCommand(port, 'KEYS', 'ratelimit:v2:*')
  return keys.length
}
