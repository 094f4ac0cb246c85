import { Connection } from '../traffic/connection.js'
import { requestOf } from '../traffic/request.js'
import { scheduleOf } from '../traffic/schedule.js'
import { sendOnTime } from '../traffic/send.js'

/** More than one connection, so that no request waits for the client's previous answer. */
const CONNECTIONS_PER_GATEWAY = 4

/**
 * Sends each client's requests at its own pace to the gateways in turn, as a load balancer would.
 *
 * @param {readonly import('./cast.js').Client[]} cast
 * @param {readonly number[]} ports
 * @param {number} seconds
 * @param {(sent: import('../traffic/send.js').Sent) => void} tell
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
