// Faults between a call and its answer: an unknown script, a lost reply, an error.
import { setTimeout as sleep } from 'node:timers/promises'
import { countCharges, total } from '../redis-clients/server-count.ts'
import { startRedis } from '../support/redis-process.ts'
import { openConnection } from '../support/resp.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { DEADLINE_MS, openLimiter, openLoop } from './measure.mjs'
import { NODE_FAULTS, startWithUser, USER } from './node-faults.ts'
import { atMost, exactly, info, moreThan, time } from './rows.mjs'

/** The server forgets its scripts every 5 ms. */
export async function flushedScripts(library) {
  const server = await startRedis()
  const opened = await openLimiter(library, server.port, { deadlineMs: 1_000 })
  const loop = openLoop(opened, 1_000, { policy: 'countable' })
  const connection = await openConnection(server.port)
  const startMs = performance.now()
  let flushes = 0
  while (performance.now() - startMs < 3_000 || flushes < 400) {
    await connection.send('SCRIPT', 'FLUSH', 'SYNC')
    flushes++
    await sleep(Math.max(0, startMs + flushes * 5 - performance.now()))
  }
  connection.close()
  const { results, rejected } = await loop.stop()
  await opened.close()
  const charged = total(await chargesOf(server.port))
  await server.stop()
  return [
    moreThan('flushes', flushes, 399),
    atMost('calls that threw', rejected, 0),
    atMost('calls not decided by Redis', results.filter(({ source }) => source !== 'redis').length, 0),
    exactly('charges lost or made twice', charged - results.length, 0),
  ]
}

/** Returns the limits on a server, without other keys. */
async function chargesOf(port) {
  return new Map([...(await countCharges([port]))].filter(([key]) => key.includes(':countable.')))
}

const ROUNDS = 20
const CALLS = 50

/** Requests are executed but replies are lost; then the connection is reset. */
export async function lostReplies(library) {
  const server = await startRedis()
  const proxy = await startTcpProxy({ port: server.port })
  const opened = await openLimiter(library, proxy.port)
  const took = []
  let threw = 0
  async function check(id) {
    const sentMs = performance.now()
    await opened.limiter.check(`user:${id}`, { policy: 'countable' }).catch(() => threw++)
    took.push(performance.now() - sentMs)
  }
  for (let round = 0; round < ROUNDS; round++) {
    while ((await opened.limiter.check('user:warm', { policy: 'roomy' })).source !== 'redis') await sleep(20)
    proxy.dropReplies({ thenResetAfterMs: 5 })
    await Promise.all(Array.from({ length: CALLS }, (_, call) => check(round * CALLS + call)))
    proxy.forward()
  }
  await opened.close()
  const counts = await chargesOf(server.port)
  await proxy.close()
  await server.stop()
  return [
    info('calls', ROUNDS * CALLS),
    moreThan('replies lost', proxy.droppedReplies, ROUNDS - 1),
    info('charged all the same', total(counts)),
    atMost('calls charged twice', [...counts.values()].filter(count => count > 1).length, 0),
    atMost('calls that threw', threw, 0),
    time('longest', Math.max(...took), DEADLINE_MS + 20),
  ]
}

/** Every error reply about the node. `npm test` asserts those about one key. */
export async function errorReplies(library) {
  const took = []
  const wrong = []
  const entries = Object.entries(NODE_FAULTS)
  for (const [name, fault] of entries) {
    const server = await startWithUser(fault.args)
    await fault.prepare?.(server)
    const client = { ioredis: USER, nodeRedis: USER }
    const opened = await openLimiter(library, server.port, {}, fault.anonymous ? {} : client)
    const check = () => opened.limiter.check('user:1', { policy: 'countable' })
    await check()
    await fault.cause(server)
    for (let call = 0; call < 30; call++) {
      const sentMs = performance.now()
      const { source } = await check()
      took.push(performance.now() - sentMs)
      if (source !== 'local') wrong.push(name)
    }
    if (opened.states[0]?.state !== 'open') wrong.push(`${name} (breaker)`)
    await opened.close()
    await fault.lift(server)
    await server.stop()
  }
  return [
    info('replies', entries.map(([name]) => name.split(/,| …/)[0]).join(', ')),
    atMost('calls not decided locally, breakers not opened', wrong.length, 0),
    time('longest', Math.max(...took), DEADLINE_MS + 10),
  ]
}
