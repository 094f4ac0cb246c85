/** Starts a Redis, an upstream, the gateways, and the generator in its own process. */
import { Child } from '../measure/child.js'
import { startServer } from '../redis/server.js'
import { startGateway, startListener } from '../rig/gateway.js'
import { cpuSecondsOf } from '../rig/proc.js'
import { policyFile } from './cast.js'

/** All clients here have one address, as behind a proxy, so the bounds for each address are lifted. */
const FLAGS = ['--max-client-connections', '0', '--max-client-requests', '0']

/** @typedef {Awaited<ReturnType<typeof startRig>>} Rig */

/** @param {number} gatewayCount @param {number} limitPerSecond */
export async function startRig(gatewayCount, limitPerSecond) {
  /** @type {(() => unknown)[]} */
  const stops = []
  const stop = async () => void (await Promise.all(stops.splice(0).map(end => end())))
  try {
    const redis = await startServer()
    stops.push(() => redis.stop())
    const upstream = await startListener(new URL('../gateway/upstream-process.js', import.meta.url).href)
    stops.push(() => upstream.stop())
    /** @type {import('../rig/gateway.js').Gateway[]} */
    const gateways = []
    for (let count = 0; count < gatewayCount; count++) {
      const gateway = await startGateway(policyFile(limitPerSecond, upstream.port), [
        '--redis',
        redis.url,
        ...FLAGS,
      ])
      stops.push(() => gateway.stop())
      gateways.push(gateway)
    }
    const generator = new Child('../load/generator-process.js', [])
    stops.push(() => generator.stop())
    await generator.receive()
    return {
      redis,
      generator,
      ports: gateways.map(({ port }) => port),
      /** Returns the seconds of processor time so far, by process. */
      cpuSeconds: () => ({
        gateway: gateways.reduce((sum, { pid }) => sum + cpuSecondsOf(pid), 0),
        redis: cpuSecondsOf(redis.pid),
        upstream: cpuSecondsOf(upstream.pid),
        generator: cpuSecondsOf(generator.pid),
      }),
      /** Switches the limits of all gateways on or off. @param {boolean} enabled */
      setLimits: enabled => patchControl(String(gateways[0]?.adminUrl), enabled),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Retries, because the answer is 503 while Redis is late on a busy machine. */
const ATTEMPTS = 10

/** @param {string} adminUrl @param {boolean} enabled @param {number} [attempt] @returns {Promise<void>} */
async function patchControl(adminUrl, enabled, attempt = 1) {
  const response = await fetch(`${adminUrl}/v1/control`, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ enabled }),
  })
  if (response.status === 503 && attempt < ATTEMPTS) return patchControl(adminUrl, enabled, attempt + 1)
  if (!response.ok) throw new Error(`control ${enabled ? 'on' : 'off'} was answered with ${response.status}`)
}
