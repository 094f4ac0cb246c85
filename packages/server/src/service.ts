import { createGate, type Decision, type Store } from 'headgate'
import type { Config, Upstream } from 'headgate/config'
import { type ConfigState, createDecisionApi } from './decision-api/decision-api.js'
import { createDemoUpstream } from './demo/upstream.js'
import { createGateway } from './gateway/gateway.js'
import { gracefulClose } from './http/close-gracefully.js'
import { listen } from './http/listen.js'
import type { Log } from './log/throttled-log.js'
import { createServing } from './serving.js'

/** Where to listen. Port 0 lets the system choose. */
export interface ServiceOptions {
  readonly config: Config
  readonly host: string
  readonly port: number
  readonly adminPort: number
  /** Takes the place of the configuration's. */
  readonly upstream: Upstream | null
  /** Whether the small upstream that is built in answers if there is no other. */
  readonly demo: boolean
  readonly log: Log
  /** Where the limits are kept. Left out: in this process. */
  readonly store?: Store
  configState(): ConfigState
}

/** A gateway and a decision API that are listening. */
export interface Service {
  readonly gatewayUrl: string
  readonly adminUrl: string
  readonly upstreamUrl: string
  /** What a client that has not asked for anything yet would be told. */
  readonly example: Decision
  /** Puts another configuration in place for every request from now on. Throws if it cannot be, and changes nothing. */
  apply(config: Config): void
  /** Stops accepting, finishes what is under way and closes everything, within five seconds. */
  stop(): Promise<void>
}

const LOOPBACK = '127.0.0.1'
// Together less than five seconds.
const GATEWAY_STOP_WITHIN_MS = 4_000
const API_STOP_WITHIN_MS = 400
const DEMO_STOP_WITHIN_MS = 100
/** Reserved for documentation: no client ever comes from it. */
const NOBODY = 'ip:192.0.2.1'

/** Starts the service, or closes what it had opened and throws a `ListenError`. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, log, store } = options
  const gate = createGate({ config, onWarning: log, ...(store && { store }) })
  const closers: (() => Promise<void> | void)[] = [() => gate.close()]
  let stopping = false
  const stop = async () => {
    stopping = true
    // In the reverse order of opening: what others depend on closes last.
    for (const close of closers.reverse()) await close()
  }

  try {
    const isDemo = options.upstream === null && config.upstream === null && options.demo
    const upstream = isDemo ? await startDemo(closers) : options.upstream
    let serving = createServing(config, upstream)
    const gateway = createGateway({ gate, serving: () => serving, log })
    const api = createDecisionApi({
      gate,
      isServing: () => !stopping,
      configState: options.configState,
      log,
    })
    const closeApi = gracefulClose(api)
    const closeGateway = gracefulClose(gateway.server)
    const adminPlace = {
      host: LOOPBACK,
      port: options.adminPort,
      hostFlag: '--host',
      portFlag: '--admin-port',
    }
    const place = { host: options.host, port: options.port, hostFlag: '--host', portFlag: '--port' }
    const port = await listen(gateway.server, place)
    // Health is answered to the last, and with 503 as soon as stopping began.
    closers.push(() => closeApi(API_STOP_WITHIN_MS))
    closers.push(async () => {
      await closeGateway(GATEWAY_STOP_WITHIN_MS)
      gateway.release()
    })
    const adminPort = await listen(api, adminPlace)
    return {
      gatewayUrl: urlOf(options.host, port),
      adminUrl: urlOf(LOOPBACK, adminPort),
      upstreamUrl: `http://${serving.upstream.authority}`,
      example: await gate.peek(NOBODY, config.default),
      apply(changed) {
        serving = createServing(changed, upstream)
        gate.reload(changed)
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

async function startDemo(closers: (() => Promise<void> | void)[]): Promise<Upstream> {
  const server = createDemoUpstream()
  const close = gracefulClose(server)
  const port = await listen(server, { host: LOOPBACK, port: 0, hostFlag: '--host', portFlag: '--upstream' })
  // Only the gateway is connected to it, and that has closed by then.
  closers.push(() => close(DEMO_STOP_WITHIN_MS))
  return { hostname: LOOPBACK, port, authority: `${LOOPBACK}:${port}` }
}

function urlOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}
