import { createGate, type Decision, type Store, type SubjectOptions } from 'headgate'
import { type Config, type UpstreamConfig, upstreamOf } from 'headgate/config'
import type { RedisStore } from 'headgate/redis'
import { createStatistics } from 'headgate/statistics'
import { adminEndpoints } from './admin/admin-endpoints.js'
import { createAdminServer } from './admin/admin-server.js'
import type { Token } from './admin/tokens.js'
import type { AlertOptions } from './cli/alert-flags.js'
import { pageEndpoints } from './dashboard/page-endpoints.js'
import { readPageFiles } from './dashboard/page-files.js'
import { createDemoUpstream } from './demo-upstream.js'
import type { Envoy, EnvoyOptions } from './envoy/start-envoy.js'
import { forwardAuthEndpoint } from './forward-auth/forward-auth-endpoint.js'
import type { Bounds } from './gateway/bounds.js'
import { type AccessEntry, createGateway, type Gateway } from './gateway/gateway.js'
import type { Log } from './gateway/throttled-log.js'
import { gracefulClose } from './http/close-gracefully.js'
import { listen } from './http/listen.js'
import { type CertificateFiles, createTlsFront, type TlsFront } from './http/tls-front.js'
import type { ConfigCounts } from './metrics/config-counts.js'
import { UpstreamCounts } from './metrics/upstream-counts.js'
import { startFigures } from './observe/start-figures.js'
import { closeUnused, createServing } from './serving.js'

/** The port for decisions, operators, probes and metrics. */
export interface AdminOptions {
  /** A loopback address if there are no tokens: then whoever reaches it may change every limit. */
  readonly host: string
  readonly port: number
  readonly tokens: readonly Token[]
  /** Names by which it may be called beside addresses. */
  readonly names: readonly string[]
  /** Whether metrics need no token. */
  readonly metricsPublic: boolean
  /** Whether subjects are shown whole instead of masked. */
  readonly showSubjects: boolean
}

/** Where to listen. Port 0 lets the system choose. */
export interface ServiceOptions {
  readonly config: Config
  readonly host: string
  readonly port: number
  readonly admin: AdminOptions
  /** How much of the gateway clients and upstream may take. */
  readonly bounds: Partial<Bounds>
  /** Takes the place of the configuration's. */
  readonly upstream: UpstreamConfig | null
  /** An authority to trust of https upstreams, in PEM. */
  readonly upstreamCa?: string
  /** Whether the small upstream that is built in answers if there is no other. */
  readonly demo: boolean
  readonly log: Log
  /** When operators are called, and how. */
  readonly alerts: AlertOptions
  /** Where the limits are kept. Left out: in this process. */
  readonly store?: Store | RedisStore
  /** How callers become names in the store. */
  readonly subject?: SubjectOptions
  /** Where the gateway's certificate and key are. Left out: it speaks HTTP alone. */
  readonly tls?: CertificateFiles | undefined
  /** Told of every request when it has ended. */
  readonly onAccess?: ((entry: AccessEntry) => void) | undefined
  configState(): ConfigCounts
  /** Left out: no rate limit service for Envoy. */
  readonly envoy?: EnvoyOptions
}

/** A gateway and a decision API that are listening. */
export interface Service {
  readonly gatewayUrl: string
  readonly adminUrl: string
  /** Where Envoy's rate limit service listens; null without one. */
  readonly grpcAddress: string | null
  readonly upstreamUrl: string
  /** What a client that has not asked for anything yet would be told. */
  readonly example: Decision
  /**
   * Puts another configuration in place, without holding requests up while it is made ready. Rejects if it cannot be, and
   * changes nothing.
   */
  apply(config: Config): Promise<void>
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
  const { config, log, store, subject, bounds, admin } = options
  const statistics = store?.statistics ?? createStatistics({ sampleArrivals: true })
  const gate = createGate({
    statistics,
    config,
    onWarning: log,
    ...(store && { store }),
    ...(subject && { subject }),
  })
  const figures = startFigures({ ...options, gate, statistics })
  let envoy: Envoy | null = null
  let envoyStopped: Promise<void> | undefined
  const closers: (() => Promise<void> | void)[] = [
    () => gate.close(),
    () => figures.close(),
    () => envoyStopped,
  ]
  let stopping = false
  const stop = async () => {
    stopping = true
    envoyStopped = envoy?.stop(GATEWAY_STOP_WITHIN_MS)
    // In the reverse order of opening: what others depend on closes last.
    for (const close of closers.reverse()) await close()
  }

  try {
    const isDemo =
      options.upstream === null && config.upstream === null && config.routes.length === 0 && options.demo
    const upstream = isDemo ? await startDemo(closers) : options.upstream
    const trusting = options.upstreamCa === undefined ? {} : { ca: options.upstreamCa }
    let serving = createServing(config, { upstream, ...trusting })
    await serving.identify.ready()
    const upstreams = new UpstreamCounts()
    const gateway = createGateway({
      ...{ gate, serving: () => serving, log, bounds, onAccess: options.onAccess },
      onAttempt: attempt => upstreams.add(attempt),
    })
    const { metricsPublic } = admin
    const { configState } = options
    if (options.envoy !== undefined) {
      // Loaded only when it is needed: gRPC takes longer to load than all the rest.
      const { startEnvoy } = await import('./envoy/start-envoy.js')
      envoy = await startEnvoy(options.envoy, gate, log)
    }
    const own = adminEndpoints({
      ...{
        gate,
        figures,
        statistics,
        upstreams,
        log,
        metricsPublic,
        configState,
        isServing: () => !stopping,
      },
    })
    const page = pageEndpoints(await readPageFiles())
    const forwardAuth = forwardAuthEndpoint({ gate, log, identify: () => serving.identify })
    const endpoints = [...own, ...page, forwardAuth, ...(envoy === null ? [] : [envoy.endpoint])]
    const api = createAdminServer({ ...admin, endpoints, log })
    const closeApi = gracefulClose(api)
    const tls = options.tls === undefined ? null : await startTls(options.tls, gateway, log)
    if (tls !== null) closers.push(() => tls.close())
    const front = tls === null ? undefined : { acceptor: tls.server, http2: gateway.http2 }
    const closeGateway = gracefulClose(gateway.server, front)
    const adminPlace = {
      ...admin,
      hostFlag: '--admin-host',
      portFlag: '--admin-port',
    }
    const place = { host: options.host, port: options.port, hostFlag: '--host', portFlag: '--port' }
    const port = await listen(tls?.server ?? gateway.server, place)
    // Health is answered to the last, and with 503 as soon as stopping began.
    closers.push(() => closeApi(API_STOP_WITHIN_MS))
    closers.push(async () => {
      await closeGateway(GATEWAY_STOP_WITHIN_MS)
      for (const pool of serving.pools) pool.close()
    })
    const adminPort = await listen(api, adminPlace)
    return {
      gatewayUrl:
        tls === null ? urlOf(options.host, port) : urlOf(options.host, port).replace('http:', 'https:'),
      adminUrl: urlOf(admin.host, adminPort),
      grpcAddress: options.envoy && envoy ? hostAndPort(options.envoy.host, envoy.port) : null,
      upstreamUrl: (upstream ?? config.upstream ?? config.routes[0]?.upstream)?.urls.join(', ') ?? '',
      example: await gate.peek(NOBODY, config.default),
      async apply(changed) {
        // The last step that can fail comes before the first that shows: whole or not at all.
        const before = serving
        const next = createServing(changed, { upstream, before, ...trusting })
        await gate.reloadInBackground(changed)
        serving = next
        closeUnused(before, next)
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

function startTls(files: CertificateFiles, { server, http2 }: Gateway, log: Log): Promise<TlsFront> {
  return createTlsFront({
    files,
    http1: server,
    http2,
    onReload(error) {
      if (error === null) return log(`${files.cert}: in use as changed`)
      const { message: cause } = error
      const consequence = 'the last good certificate stays'
      log(`${files.cert}: NOT in use, ${consequence}: ${cause}`, { level: 'error', cause, consequence })
    },
  })
}

async function startDemo(closers: (() => Promise<void> | void)[]): Promise<UpstreamConfig> {
  const server = createDemoUpstream()
  const close = gracefulClose(server)
  const port = await listen(server, { host: LOOPBACK, port: 0, hostFlag: '--host', portFlag: '--upstream' })
  // Only the gateway is connected to it, and that has closed by then.
  closers.push(() => close(DEMO_STOP_WITHIN_MS))
  return upstreamOf(`http://${LOOPBACK}:${port}`)
}

function urlOf(host: string, port: number): string {
  return `http://${hostAndPort(host, port)}`
}

function hostAndPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
