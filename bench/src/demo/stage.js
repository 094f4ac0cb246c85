/** Starts everything the demo needs: one Redis, three apps, and two gateways that share their limits. */
import { startServer } from '../redis/server.js'
import { startGateway, startListener } from '../rig/gateway.js'
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
    const redis = await keep(startServer())
    tell(`${APPS} apps`)
    const file = new URL('app-process.js', import.meta.url).href
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
      freeze: () => process.kill(redis.pid, 'SIGSTOP'),
      thaw: () => process.kill(redis.pid, 'SIGCONT'),
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
