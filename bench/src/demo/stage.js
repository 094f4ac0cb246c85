/** Everything the demo needs: one Redis, three apps, two gateways that share their limits, and the traffic. */
import { Connection } from '../harness/connection.js'
import { startGateway, startListener } from '../harness/gateway.js'
import { requestOf } from '../harness/http.js'
import { startRedis } from '../harness/redis-server.js'
import { scheduleOf } from '../harness/schedule.js'
import { sendOnTime } from '../harness/send.js'
import { policyFile } from './cast.js'

const APPS = 3
const GATEWAYS = 2

/** @typedef {Awaited<ReturnType<typeof setUp>>} Stage */

/** @param {(step: string) => void} tell */
export async function setUp(tell) {
  /** @type {(() => Promise<void>)[]} */
  const stops = []
  const takeDown = async () => void (await Promise.all(stops.splice(0).map(stop => stop())))

  /** @template {{ stop(): Promise<void> }} T @param {Promise<T>} starting */
  async function keep(starting) {
    const started = await starting
    stops.push(() => started.stop())
    return started
  }

  try {
    tell('a Redis')
    const redis = await keep(startRedis())
    tell(`${APPS} apps`)
    const file = new URL('app-process.js', import.meta.url)
    const apps = await Promise.all(Array.from({ length: APPS }, () => keep(startListener(file))))
    tell(`${GATEWAYS} gateways`)
    const policy = policyFile(apps.map(({ port }) => port))
    const flags = ['--redis', redis.url, '--show-subjects', '--max-client-requests', '0']
    const gateways = await Promise.all(
      Array.from({ length: GATEWAYS }, () => keep(startGateway(policy, flags))),
    )
    return {
      gatewayPorts: gateways.map(({ port }) => port),
      dashboardUrl: `${gateways[0]?.adminUrl}/`,
      freeze: () => redis.signal('SIGSTOP'),
      thaw: () => redis.signal('SIGCONT'),
      /** How many requests each app has answered. */
      answered: () => Promise.all(apps.map(({ port }) => answeredBy(port))),
      takeDown,
    }
  } catch (error) {
    await takeDown()
    throw error
  }
}

/** @param {number} port @returns {Promise<number>} */
async function answeredBy(port) {
  const response = await fetch(`http://127.0.0.1:${port}/answered`)
  return /** @type {{ answered: number }} */ (await response.json()).answered
}

/** More than one connection, so that no request waits for the client's previous answer. */
const CONNECTIONS_PER_GATEWAY = 4

/**
 * Sends each client's requests at its own pace to the gateways in turn, as a load balancer would.
 *
 * @param {readonly import('./cast.js').Client[]} cast
 * @param {readonly number[]} ports
 * @param {number} seconds
 * @param {(sent: import('../harness/send.js').Sent) => void} tell
 * @param {AbortSignal} signal
 */
export async function runTraffic(cast, ports, seconds, tell, signal) {
  const clients = cast.map(({ name }) => ({
    request: requestOf(name, '/api/orders'),
    connections: Array.from(
      { length: ports.length * CONNECTIONS_PER_GATEWAY },
      (_, index) => new Connection(/** @type {number} */ (ports[index % ports.length])),
    ),
    turn: 0,
  }))
  try {
    await sendOnTime(
      scheduleOf(cast, seconds * 1000),
      (sender, _, done) => {
        const client = /** @type {typeof clients[number]} */ (clients[sender])
        const connection = client.connections[client.turn++ % client.connections.length]
        connection?.ask(client.request, done)
      },
      tell,
      signal,
    )
  } finally {
    for (const { connections } of clients) for (const connection of connections) connection.close()
  }
}
