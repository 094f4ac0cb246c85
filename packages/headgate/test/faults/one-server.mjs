// Faults of one server, and of the way to it.
import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis } from '../support/redis-process.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { backAfterMs, DEADLINE_MS, flips, ms, openLimiter, openLoop, percentile } from './measure.mjs'
import { atMost, info, time } from './rows.mjs'

const RPS = 2_000
const WARM_UP_MS = 1_000
const FAULT_MS = 5_000

function latencies(during, deadlineMs = DEADLINE_MS) {
  const took = during.map(result => result.ms)
  return [
    info('p50', ms(percentile(took, 50))),
    time('p99', percentile(took, 99), 5),
    time('p99.9', percentile(took, 99.9), 50),
    time('longest', Math.max(...took), deadlineMs + 20),
    atMost(
      'requests that waited for the deadline',
      took.filter(each => each >= deadlineMs * 0.9).length,
      Math.round((RPS / 1000) * deadlineMs * 1.5),
    ),
  ]
}

/** Warms up, applies the fault for a while, lifts it, and returns what the requests saw. */
async function throughFault(library, port, { cause, lift, faultMs, afterMs = 3_000 }) {
  const opened = await openLimiter(library, port)
  const loop = openLoop(opened, RPS)
  await sleep(WARM_UP_MS)
  const causedMs = performance.now()
  await cause()
  await sleep(faultMs)
  const liftedMs = performance.now()
  await lift()
  const usableMs = performance.now()
  await sleep(afterMs)
  const { results, rejected } = await loop.stop()
  await opened.close()
  const during = results.filter(({ sentMs }) => sentMs >= causedMs && sentMs < liftedMs)
  return [
    info('requests during the fault', during.length),
    atMost('calls that threw', rejected, 0),
    ...latencies(during),
    time('back on Redis', backAfterMs(results, usableMs), 1_000),
  ]
}

export async function frozen(library) {
  const server = await startRedis()
  const rows = await throughFault(library, server.port, {
    cause: () => server.kill('SIGSTOP'),
    lift: () => server.kill('SIGCONT'),
    faultMs: FAULT_MS,
  })
  await server.stop()
  return rows
}

/** Frozen for so long that anything kept for an answer that never comes would show in the memory. */
export async function frozenForLong(library, { quick, long }) {
  const server = await startRedis()
  const opened = await openLimiter(library, server.port)
  const outcome = { asked: 0, rejected: 0, waiting: 0, mostWaiting: 0 }
  const send = () => {
    outcome.asked++
    outcome.mostWaiting = Math.max(outcome.mostWaiting, ++outcome.waiting)
    opened.limiter
      .check(`user:${outcome.asked % 1_000}`, { policy: 'roomy' })
      .catch(() => outcome.rejected++)
      .finally(() => outcome.waiting--)
  }
  server.kill('SIGSTOP')
  const lastsMs = long ? 300_000 : quick ? 10_000 : 30_000
  const fromMs = performance.now()
  let settledBytes = 0
  for (let elapsedMs = 0; elapsedMs < lastsMs; elapsedMs = performance.now() - fromMs) {
    while (outcome.asked < elapsedMs) send()
    // The first seconds load the code and the local states that every later one uses.
    if (settledBytes === 0 && elapsedMs > lastsMs / 3) settledBytes = process.memoryUsage().rss
    await sleep(1)
  }
  const grownMb = (process.memoryUsage().rss - settledBytes) / 1e6
  server.kill('SIGCONT')
  await opened.close()
  await server.stop()
  return [
    info('seconds', Math.round(lastsMs / 1_000)),
    info('requests during the fault', outcome.asked),
    atMost('calls that threw', outcome.rejected, 0),
    atMost('most requests waiting at once', outcome.mostWaiting, 1_000),
    atMost('memory grown, MB', Math.max(0, Math.round(grownMb)), 20),
  ]
}

export async function killed(library) {
  const server = await startRedis()
  let next
  const rows = await throughFault(library, server.port, {
    cause: () => server.kill('SIGKILL'),
    lift: async () => {
      await server.exited
      next = await startRedis({ port: server.port })
    },
    faultMs: FAULT_MS,
    afterMs: 4_000,
  })
  await next.stop()
  await server.stop()
  return rows
}

/** One busy subject, far above its limit of 100 in two seconds, over the death of Redis and its empty return. */
export async function admitted(library) {
  const server = await startRedis()
  const opened = await openLimiter(library, server.port)
  const loop = openLoop(opened, 300, { policy: 'log', pick: () => 'user:1' })
  await sleep(3_000)
  server.kill('SIGKILL')
  await server.exited
  await sleep(FAULT_MS)
  const next = await startRedis({ port: server.port })
  await sleep(5_000)
  const { results, rejected } = await loop.stop()
  await opened.close()
  await next.stop()
  await server.stop()
  const times = results.flatMap(({ allowed, doneMs }) => (allowed ? [doneMs] : [])).sort((a, b) => a - b)
  const most = Math.max(
    ...times.map((from, index) => times.slice(index).filter(at => at < from + 2_000).length),
  )
  return [
    atMost('calls that threw', rejected, 0),
    info('admitted in all, of 100 every 2 s', times.length),
    atMost('most admitted in any 2 s', most, 200),
  ]
}

export async function blackhole(library) {
  const server = await startRedis()
  const proxy = await startTcpProxy({ port: server.port })
  const rows = await throughFault(library, proxy.port, {
    cause: () => proxy.blackhole(),
    lift: () => proxy.forward(),
    faultMs: FAULT_MS,
    afterMs: 4_000,
  })
  await proxy.close()
  await server.stop()
  return rows
}

export async function slow(library, latencyMs, { quick }) {
  const server = await startRedis()
  const proxy = await startTcpProxy({ port: server.port })
  const opened = await openLimiter(library, proxy.port)
  await opened.limiter.check('user:1', { policy: 'roomy' })
  proxy.delay({ ms: latencyMs / 2, jitterMs: latencyMs / 20 })
  const fromMs = performance.now()
  const loop = openLoop(opened, 500)
  await sleep(quick ? 3_000 : 10_000)
  const { results, rejected } = await loop.stop()
  await opened.close()
  await proxy.close()
  await server.stop()
  const byRedis = results.filter(({ source }) => source === 'redis').length
  return [
    atMost('calls that threw', rejected, 0),
    time(
      'p99',
      percentile(
        results.map(result => result.ms),
        99,
      ),
      Math.min(2 * latencyMs, DEADLINE_MS) + 5,
    ),
    atMost('times the breaker closed again', flips(opened.states, fromMs), 1),
    info('decided by Redis', `${((100 * byRedis) / results.length).toFixed(1)} %`),
  ]
}

export async function sliced(library) {
  const server = await startRedis()
  const proxy = await startTcpProxy({ port: server.port })
  const opened = await openLimiter(library, proxy.port, { deadlineMs: 1_000 })
  proxy.slice({ bytes: 1 })
  const sources = []
  for (let call = 0; call < 200; call++) {
    sources.push((await opened.limiter.check(`user:${call}`, { policy: 'roomy' })).source)
  }
  await opened.close()
  await proxy.close()
  await server.stop()
  return [atMost('of 200 not decided by Redis', sources.filter(source => source !== 'redis').length, 0)]
}
