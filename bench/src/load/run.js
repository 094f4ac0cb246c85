import { setTimeout as sleep } from 'node:timers/promises'
import { startGateway, startListener } from '../harness/gateway.js'
import { Child, cpuMicrosOf } from '../harness/processes.js'
import { startRedis } from '../harness/redis-server.js'
import { scheduleOf } from '../harness/schedule.js'
import { figuresOf, slicesOf, verdictsOf } from './figures.js'
import { policyFile, usersOf } from './users.js'

/**
 * @typedef {object} Options
 * @property {number} seconds The measured time, after a warm-up.
 * @property {number} rate Requests a second in all.
 * @property {number} users
 * @property {number} connections
 * @property {number} gateways Processes that share the Redis.
 */
/** @typedef {Awaited<ReturnType<typeof runLoad>>} Outcome */

/** All clients here have one address, as behind a proxy, so the bounds for each address are lifted. */
const FLAGS = ['--max-client-connections', '0', '--max-client-requests', '0']
/** Long enough to compile the gateway's code; half of a short run. */
const WARM_UP_MS = 6_000
/** If the generator is later than this, the run measured the generator. */
const MOST_LATE_MS = 5
/** The control answers 503 while Redis is late on a busy machine. */
const CONTROL_ATTEMPTS = 10

/**
 * Makes one run: sends traffic on schedule, and switches the limits on and off.
 *
 * @param {Options} options
 * @param {(step: string) => void} tell
 */
export async function runLoad(options, tell) {
  const { users, rate, connections, seconds } = options
  const { users: senders, limitPerSecond } = usersOf(options)
  const warmUpMs = Math.min(WARM_UP_MS, seconds * 500)
  const lengthMs = warmUpMs + seconds * 1000
  const slices = slicesOf(warmUpMs, seconds * 1000)
  tell('starting Redis, an upstream and the gateway')
  const parts = await start(options.gateways, limitPerSecond)
  try {
    tell(`opening ${connections} connections`)
    await parts.generator.request({ ports: parts.ports, users, rate, connections, lengthMs })
    const beganMs = performance.now()
    const traffic = parts.generator.receive()
    traffic.catch(() => {})
    const until = (/** @type {number} */ ms) => sleep(Math.max(0, beganMs + ms - performance.now()))
    await until(warmUpMs)
    const cpuBefore = parts.cpuMicros()
    for (const [index, slice] of slices.entries()) {
      tell(`slice ${index + 1} of ${slices.length}, limits ${slice.isOn ? 'on' : 'off'}`)
      await until(slice.startMs)
      await setLimits(parts.adminUrl, slice.isOn)
      // On a busy machine, that took a while.
      slice.startMs = performance.now() - beganMs
    }
    await until(lengthMs)
    const cpuAfter = parts.cpuMicros()
    const seen = /** @type {import('./generator-process.js').Traffic} */ (await traffic)
    const { dueMs } = scheduleOf(senders, lengthMs)
    const figures = figuresOf({ dueMs, ...seen }, slices, { fromMs: warmUpMs, toMs: lengthMs })
    return {
      options,
      limitPerSecond,
      abusers: senders.filter(({ isAbusive }) => isAbusive).length,
      figures,
      cores: Object.entries(cpuAfter).map(([name, micros]) => ({
        name,
        cores: (micros - (cpuBefore[name] ?? 0)) / (seconds * 1e6),
      })),
      generatorWasLate: figures.late.p99Ms > MOST_LATE_MS,
      verdicts: verdictsOf(figures, seen, { connections, fewestOpen: seen.fewestOpen }),
    }
  } finally {
    await parts.stop()
  }
}

/** Starts a Redis, an upstream, the gateways, and the generator. @param {number} gatewayCount @param {number} limitPerSecond */
async function start(gatewayCount, limitPerSecond) {
  /** @type {(() => unknown)[]} */
  const stops = []
  const stop = async () => void (await Promise.all(stops.splice(0).map(end => end())))
  try {
    const redis = await startRedis()
    stops.push(redis.stop)
    const upstream = await startListener(new URL('../harness/upstream-process.js', import.meta.url))
    stops.push(upstream.stop)
    /** @type {Awaited<ReturnType<typeof startGateway>>[]} */
    const gateways = []
    for (let count = 0; count < gatewayCount; count++) {
      const policy = policyFile(limitPerSecond, upstream.port)
      const gateway = await startGateway(policy, ['--redis', redis.url, ...FLAGS])
      stops.push(gateway.stop)
      gateways.push(gateway)
    }
    const generator = new Child(new URL('generator-process.js', import.meta.url))
    stops.push(() => generator.stop())
    await generator.receive()
    return {
      generator,
      ports: gateways.map(({ port }) => port),
      adminUrl: String(gateways[0]?.adminUrl),
      /** @returns {Record<string, number>} */
      cpuMicros: () => ({
        gateway: gateways.reduce((sum, { pid }) => sum + cpuMicrosOf(pid), 0),
        redis: redis.cpuMicros(),
        upstream: cpuMicrosOf(upstream.pid),
        generator: cpuMicrosOf(generator.pid),
      }),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Switches the limits of all gateways on or off. @param {string} adminUrl @param {boolean} enabled */
async function setLimits(adminUrl, enabled) {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(`${adminUrl}/v1/control`, {
      method: 'PATCH',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ enabled }),
    })
    if (response.ok) return
    if (response.status !== 503 || attempt === CONTROL_ATTEMPTS)
      throw new Error(`control ${enabled ? 'on' : 'off'} was answered with ${response.status}`)
  }
}
