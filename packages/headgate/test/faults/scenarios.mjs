// Each scenario brings one fault about and returns rows: figure, value, target, and whether it was met.
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { backAfterMs, DEADLINE_MS, flips, ms, openLimiter, openLoop, percentile } from './measure.mjs'

const RPS = 2_000
const WARM_UP_MS = 1_000
const FAULT_MS = 5_000

/** Times depend on the machine as counts do not: they are figures of the report and do not fail it. */
const time = (figure, value, targetMs) => ({
  figure,
  value: ms(value),
  target: `≤ ${targetMs} ms`,
  met: value <= targetMs,
  timing: true,
})
const atMost = (figure, value, most) => ({
  figure,
  value: String(value),
  target: most === 0 ? '0' : `≤ ${most}`,
  met: value <= most,
})
const info = (figure, value) => ({ figure, value: String(value), target: '', met: true })

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

/** Warm, then the fault for a while, then without it: what the requests saw. */
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

async function frozen(library) {
  const server = await startRedis()
  const rows = await throughFault(library, server.port, {
    cause: () => server.kill('SIGSTOP'),
    lift: () => server.kill('SIGCONT'),
    faultMs: FAULT_MS,
  })
  await server.stop()
  return rows
}

async function killed(library) {
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
  // A restart costs up to a reconnection delay on top of the probe's.
  const back = rows.findIndex(({ figure }) => figure === 'back on Redis')
  return rows.with(back, {
    ...rows[back],
    target: '≤ 3000 ms',
    met: Number.parseFloat(rows[back].value) <= 3_000,
  })
}

/** One busy subject, far above its limit of 100 in two seconds, over the death of Redis and its return, empty. */
async function admitted(library) {
  const server = await startRedis()
  const opened = await openLimiter(library, server.port)
  const loop = openLoop(opened, 300, { policy: 'log', subjects: 1 })
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

async function blackhole(library) {
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

async function slow(library, latencyMs, { quick }) {
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

async function sliced(library) {
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

async function outOfMemory(library) {
  const server = await startRedis()
  const opened = await openLimiter(library, server.port)
  const loop = openLoop(opened, RPS)
  await sleep(WARM_UP_MS)
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

async function eviction(library) {
  const rows = []
  for (const policy of ['noeviction', 'allkeys-lru', 'volatile-ttl']) {
    const server = await startRedis({ args: ['--maxmemory-policy', policy] })
    const opened = await openLimiter(library, server.port)
    await opened.close()
    await server.stop()
    const expected = policy === 'noeviction' ? 0 : 1
    const warned = opened.warnings.filter(code => code === 'WARN_HEADGATE_EVICTION_POLICY').length
    rows.push({
      figure: `warnings with ${policy}`,
      value: String(warned),
      target: String(expected),
      met: warned === expected,
    })
  }
  return rows
}

/** Clients whose server takes connections and closes them at once; after a while it answers again. */
async function herd(library, { quick }) {
  const clients = 50
  const server = await startRedis()
  const proxy = await startTcpProxy({ port: server.port })
  const opened = await Promise.all(Array.from({ length: clients }, () => openLimiter(library, proxy.port)))
  // Everybody asks all the time, so that breakers open and connections are replaced as they would be.
  const loops = opened.map(each => openLoop(each, 20))
  await sleep(500)
  await proxy.close()
  const attempts = []
  const refusing = createServer(socket => {
    attempts.push(performance.now())
    socket.on('error', () => {})
    socket.resetAndDestroy()
  })
  await new Promise(resolve => refusing.listen(proxy.port, '127.0.0.1', resolve))
  const fromMs = performance.now()
  const outageMs = quick ? 6_000 : 12_000
  await sleep(outageMs)
  await new Promise(resolve => refusing.close(resolve))
  const again = await startTcpProxy({ port: server.port, listenOn: proxy.port })
  const backMs = performance.now()
  await sleep(5_000)
  const reports = await Promise.all(loops.map(loop => loop.stop()))
  for (const each of opened) await each.close()
  await again.close()
  await server.stop()
  const settled = attempts.filter(atMs => atMs >= fromMs + (quick ? 3_000 : 5_000))
  const crowds = new Map()
  for (const atMs of settled) {
    const slice = Math.floor(atMs / 100)
    crowds.set(slice, (crowds.get(slice) ?? 0) + 1)
  }
  const seconds = (outageMs - (quick ? 3_000 : 5_000)) / 1000
  return [
    info('clients', clients),
    info('attempts a second, all together', (settled.length / seconds).toFixed(0)),
    { ...atMost('most attempts in 100 ms', Math.max(0, ...crowds.values()), clients / 4), timing: true },
    atMost(
      'calls that threw',
      reports.reduce((sum, { rejected }) => sum + rejected, 0),
      0,
    ),
    time(
      'last client back on Redis',
      Math.max(...reports.map(({ results }) => backAfterMs(results, backMs))),
      3_000,
    ),
  ]
}

export const scenarios = [
  ['R4', 'frozen (SIGSTOP)', frozen],
  ['R6', 'killed, restarted empty', killed],
  ['R6', 'killed, restarted empty: one busy subject', admitted],
  ['R7', 'lost route (nothing arrives, nothing closes)', blackhole],
  ...[5, 20, 50, 200].map(latencyMs => [
    'R8',
    `slow: ${latencyMs} ms`,
    (library, options) => slow(library, latencyMs, options),
  ]),
  ['R8', 'one byte at a time', sliced],
  ['R14', 'connections refused to a fleet', herd],
  ['R17', 'out of memory', outOfMemory],
  ['R17', 'eviction policy', eviction],
].map(([promise, fault, run]) => ({ promise, fault, run }))
