import { createLimiter, type Decision, type Store } from 'headgate'
import type { Config } from './config/parse-config.js'
import type { Upstream } from './config/parse-upstream.js'
import { createDecisionApi } from './decision-api/decision-api.js'
import { createDemoUpstream } from './demo/upstream.js'
import { createGateway } from './gateway/gateway.js'
import { gracefulClose } from './http/close-gracefully.js'
import { listen } from './http/listen.js'
import type { Log } from './log/throttled-log.js'

/** Where to listen. Port 0 lets the system choose. */
export interface ServiceOptions {
  readonly config: Config
  readonly host: string
  readonly port: number
  readonly adminPort: number
  /** Null: the small upstream that is built in. */
  readonly upstream: Upstream | null
  readonly log: Log
  /** Where the limits are kept. Left out: in this process. */
  readonly store?: Store
}

/** A gateway and a decision API that are listening. */
export interface Service {
  readonly gatewayUrl: string
  readonly adminUrl: string
  readonly upstreamUrl: string
  /** What a client that has not asked for anything yet would be told. */
  readonly example: Decision
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
  const limiter = createLimiter({ tiers: config.tiers, policies: config.policies, ...(store && { store }) })
  const closers: (() => Promise<void> | void)[] = [() => limiter.close()]
  let serving = true
  const stop = async () => {
    serving = false
    // In the reverse order of opening: what others depend on closes last.
    for (const close of closers.reverse()) await close()
  }

  try {
    const upstream = options.upstream ?? (await startDemo(closers))
    const gateway = createGateway({ limiter, rule: config.default, upstream, log })
    const api = createDecisionApi({
      limiter,
      names: { policies: new Set(Object.keys(config.policies)), tiers: new Set(Object.keys(config.tiers)) },
      isServing: () => serving,
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
      upstreamUrl: `http://${upstream.authority}`,
      example: await limiter.peek(NOBODY, config.default),
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
