// A fleet whose server rejects it, and comes back.
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis } from '../support/redis-process.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { backAfterMs, openLimiter, openLoop } from './measure.mjs'
import { atMost, info, time } from './rows.mjs'

/** Clients whose server accepts connections and closes them at once; after a while it answers again. */
export async function herd(library, { quick }) {
  const clients = 200
  const server = await startRedis()
  const proxy = await startTcpProxy({ port: server.port })
  const opened = await Promise.all(Array.from({ length: clients }, () => openLimiter(library, proxy.port)))
  // Everybody asks all the time, so that breakers open and connections are replaced as usual. One loop serves all:
  // two hundred would keep the process too busy to measure arrival times.
  const fleet = inTurn(opened)
  const loop = openLoop(fleet, 5 * clients)
  await sleep(500)
  await proxy.close()
  const attempts = []
  const stalls = watchStalls()
  const rejecting = createServer(socket => {
    attempts.push(performance.now())
    socket.on('error', () => {})
    socket.resetAndDestroy()
  })
  await new Promise(resolve => rejecting.listen(proxy.port, '127.0.0.1', resolve))
  const fromMs = performance.now()
  const outageMs = quick ? 8_000 : 30_000
  await sleep(outageMs)
  stalls.stop()
  await new Promise(resolve => rejecting.close(resolve))
  const again = await startTcpProxy({ port: server.port, listenOn: proxy.port })
  const backMs = performance.now()
  await sleep(5_000)
  const { results, rejected } = await loop.stop()
  for (const each of opened) await each.close()
  await again.close()
  await server.stop()
  const settled = attempts.filter(atMs => atMs >= fromMs + 5_000)
  const crowds = new Map()
  for (const atMs of settled) crowds.set(sliceOf(atMs), (crowds.get(sliceOf(atMs)) ?? 0) + 1)
  // Work that was due while this process stood still happens all at once; two hundred processes would not stand
  // still together.
  const late = stalls.slices().filter(slice => crowds.delete(slice))
  const seconds = (outageMs - 5_000) / 1000
  return [
    info('clients', clients),
    info('attempts a second, all together', (settled.length / seconds).toFixed(0)),
    { ...atMost('most attempts in 100 ms', Math.max(0, ...crowds.values()), clients / 4), timing: true },
    info('tenths of a second left out, because this process was late', late.length),
    atMost('calls that threw', rejected, 0),
    time('last client back on Redis', lastBackAfterMs(results, clients, backMs), 3_000),
  ]
}

const SLICE_MS = 100
const TICK_MS = 5
const STALL_MS = 20
const sliceOf = atMs => Math.floor(atMs / SLICE_MS)

/** Records when this process was stalled for a while. */
function watchStalls() {
  const late = new Set()
  let lastMs = performance.now()
  const timer = setInterval(() => {
    const nowMs = performance.now()
    if (nowMs - lastMs > STALL_MS) {
      for (let slice = sliceOf(lastMs); slice <= sliceOf(nowMs); slice++) late.add(slice)
    }
    lastMs = nowMs
  }, TICK_MS)
  return { slices: () => [...late], stop: () => clearInterval(timer) }
}

/** Combines many limiters into one that asks each in turn and adds the client to the decision. */
function inTurn(opened) {
  let next = 0
  const check = async (subject, ask) => {
    const client = next++ % opened.length
    const { source, allowed } = await opened[client].limiter.check(subject, ask)
    return { source, allowed, client }
  }
  return { limiter: { check } }
}

function lastBackAfterMs(results, clients, fromMs) {
  const byClient = Array.from({ length: clients }, () => [])
  for (const result of results) byClient[result.client].push(result)
  return Math.max(...byClient.map(own => backAfterMs(own, fromMs)))
}
