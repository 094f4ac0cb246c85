import type { Config, Control, RuleLimiter } from 'headgate'
import type { Identify } from 'headgate/identify'
import type { ArrivalSample } from 'headgate/internal'
import { type UpstreamConfig, upstreamOf } from 'headgate/internal'
import type { Statistics } from 'headgate/metrics'
import type { Endpoint } from '../admin/endpoint.js'
import type { ConfigCounts } from '../admin/probes.js'
import { type Envoy, type EnvoyOptions, startEnvoy } from '../envoy/start-envoy.js'
import { createGateway, type Gateway } from '../gateway/gateway.js'
import { closeUnused, createServing } from '../gateway/serving.js'
import type { Bounds } from '../http/bounds.js'
import { gracefulClose } from '../http/close-gracefully.js'
import { hostAndPort, listen, urlOf } from '../http/listen.js'
import { type CertificateFiles, createTlsFront, type TlsFront } from '../http/tls-front.js'
import type { AccessEntry } from '../log/server-log.js'
import type { WriteLine } from '../log/write-line.js'
import { type AnswerReading, GatewayAnswers } from '../metrics/gateway-answers.js'
import { ProcessCounts, type ProcessReading } from '../metrics/process-counts.js'
import { TokenCounts, type TokenReading } from '../metrics/token-counts.js'
import { UpstreamCounts, type UpstreamReading } from '../metrics/upstream-counts.js'
import { createVitals, type Vitals } from '../metrics/vitals.js'
import { createDemoUpstream } from './demo-upstream.js'

/** Where limited requests come in: the gateway's port and Envoy's, served by this process or by several. */
export interface Front {
  readonly gatewayUrl: string
  /** Where Envoy's rate limit service listens; null without one. */
  readonly grpcAddress: string | null
  readonly upstreamUrl: string
  /** The counts of all processes that serve it, including this one. */
  readonly statistics: Pick<Statistics, 'read' | 'onSecond'>
  /** Returns when a share of the subjects asked any of them. */
  arrivals(): Promise<ArrivalSample>
  upstreams(): readonly UpstreamReading[]
  /** How this process is doing; called once a second. */
  vitals(): Vitals
  /** What the gateway has answered itself and closed, not because of a limit. */
  answers(): readonly AnswerReading[]
  /** The tokens of models that the gateway has settled. */
  tokens(): readonly TokenReading[]
  /** Returns the figures of the server's processes. */
  process(): ProcessReading
  /** Changes the switches of the server's processes alone, for when the store cannot be reached. */
  setControlHere(change: Partial<Control>): void
  /** Identifies the caller by the file in force. */
  identify(): Identify
  /** Its further endpoints on the admin port. */
  readonly endpoints: readonly Endpoint[]
  /** Whether the files of Envoy's limits are in use as they are; null without them. */
  envoyConfigState(): ConfigCounts | null
  /** How many processes serve it, and how many should. */
  workers(): { readonly ready: number; readonly wanted: number }
  /**
   * Applies another configuration, without blocking requests while it is prepared. Rejects if it cannot be used,
   * and then changes nothing.
   */
  apply(config: Config): Promise<void>
  /**
   * Stops accepting, finishes requests in flight for at most the drain timeout, or until `now`, and closes everything.
   */
  stop(now?: AbortSignal): Promise<void>
}

/** Port 0 lets the system choose. */
export interface FrontOptions {
  readonly config: Config
  readonly host: string
  readonly port: number
  /** How much of the gateway clients and upstream may use. */
  readonly bounds: Partial<Bounds>
  /** Replaces the configuration's. */
  readonly upstream: UpstreamConfig | null
  /** An authority to trust for https upstreams, in PEM. */
  readonly upstreamCa?: string
  /** Whether the built-in upstream answers if there is no other. */
  readonly demo: boolean
  readonly log: WriteLine
  /** The gateway's certificate and key. Default: HTTP only. */
  readonly tls?: CertificateFiles | undefined
  /** Called for every request when it has ended. */
  readonly onAccess?: ((entry: AccessEntry) => void) | undefined
  /** Default: no rate limit service for Envoy. */
  readonly envoy?: EnvoyOptions
  readonly drain: DrainOptions
}

/** How a server ends. */
export interface DrainOptions {
  /** How long it is not ready and still serves, before it stops accepting. */
  readonly delayMs: number
  /** How long requests in flight may take from then on. */
  readonly timeoutMs: number
}

/** The parts by which requests are decided and counted. */
export interface Deciding {
  readonly limiter: RuleLimiter
  readonly statistics: Statistics
}

type Closers = ((now?: AbortSignal) => unknown)[]

const LOOPBACK = '127.0.0.1'

/** Opens the ports in this process; on failure closes what it had opened and throws. */
export async function startFront({ limiter, statistics }: Deciding, options: FrontOptions): Promise<Front> {
  const { config, log } = options
  const closers: Closers = []
  const stop = async (now?: AbortSignal) => {
    // In the reverse order of opening, so that dependencies close last.
    for (const close of closers.splice(0).reverse()) await close(now)
  }
  try {
    const upstream = needsDemo(options) ? await startDemo(closers) : options.upstream
    const trusting = options.upstreamCa === undefined ? {} : { ca: options.upstreamCa }
    let serving = createServing(config, { upstream, ...trusting })
    await serving.identify.ready()
    closers.push(() => {
      for (const pool of serving.pools) pool.close()
    })
    const upstreams = new UpstreamCounts(() => serving.pools)
    const answers = new GatewayAnswers()
    const tokens = new TokenCounts()
    const ownProcess = new ProcessCounts()
    closers.push(() => ownProcess.stop())
    let http2Sessions = 0
    const gateway = createGateway({
      limiter,
      serving: () => serving,
      log,
      bounds: options.bounds,
      onAccess: options.onAccess,
      onAttempt: attempt => upstreams.add(attempt),
      onOwnAnswer: (reason, status) => answers.add(reason, status),
      onNoPermit: rejection => upstreams.addRejection(rejection),
      tokens,
    })
    gateway.http2.on('session', session => {
      http2Sessions++
      session.once('close', () => http2Sessions--)
    })
    const vitals = createVitals({
      connections: () => gateway.connections.count() + http2Sessions,
      upstreams: () => upstreams.read(),
      answers: () => answers.read(),
      process: () => ownProcess.read(),
    })
    const envoy = await openEnvoyPort(limiter, options)
    let envoyStopped: Promise<void> | undefined
    closers.push(() => envoyStopped)
    const gatewayUrl = await openGateway(gateway, options, { closers, answers })
    return {
      gatewayUrl,
      grpcAddress: options.envoy && envoy ? hostAndPort(options.envoy.host, envoy.port) : null,
      upstreamUrl: (upstream ?? config.upstream ?? config.routes[0]?.upstream)?.urls.join(', ') ?? '',
      statistics,
      arrivals: async () => statistics.arrivals(),
      upstreams: () => upstreams.read(),
      vitals,
      answers: () => answers.read(),
      tokens: () => tokens.read(),
      process: () => ownProcess.read(),
      setControlHere: change => limiter.control.setHere(change),
      identify: () => serving.identify,
      endpoints: envoy === null ? [] : [envoy.endpoint],
      envoyConfigState: () => envoy?.configState() ?? null,
      workers: () => ({ ready: 1, wanted: 1 }),
      async apply(changed) {
        // The last step that can fail comes before the first visible one: all or nothing.
        const before = serving
        const next = createServing(changed, { upstream, before, ...trusting })
        await limiter.reload(changed)
        serving = next
        closeUnused(before, next)
      },
      stop(now) {
        limiter.stopWaiting()
        // At the same time as the gateway, not after it.
        envoyStopped = envoy?.stop(options.drain.timeoutMs)
        now?.addEventListener('abort', () => envoy?.stop(0))
        return stop(now)
      },
    }
  } catch (error) {
    await stop()
    throw error
  }
}

async function openGateway(
  gateway: Gateway,
  options: FrontOptions,
  { closers, answers }: { readonly closers: Closers; readonly answers: GatewayAnswers },
): Promise<string> {
  const { host, log } = options
  const tls = options.tls === undefined ? null : await startTls(options.tls, gateway, log)
  if (tls !== null) closers.push(() => tls.close())
  const front = tls === null ? undefined : { acceptor: tls.server, http2: gateway.http2 }
  const close = gracefulClose(gateway.server, gateway.connections, front)
  const at = { host, port: options.port, hostFlag: '--host', portFlag: '--port' }
  const port = await listen(tls?.server ?? gateway.server, at)
  closers.push(async now => {
    const { timeoutMs } = options.drain
    const cut = await close({ timeoutMs, now })
    if (cut === 0) return
    answers.add('drain', null, cut)
    const when = now?.aborted ? 'at the second signal' : `${timeoutMs / 1_000} s after the stop began`
    const what =
      cut === 1
        ? '1 connection with a request in flight was'
        : `${cut} connections with a request in flight were`
    log(`${what} cut, ${when}`, { level: 'warn' })
  })
  return urlOf(host, port, tls === null ? 'http' : 'https')
}

function needsDemo({ upstream, config, demo }: FrontOptions): boolean {
  return demo && upstream === null && config.upstream === null && config.routes.length === 0
}

async function openEnvoyPort(limiter: RuleLimiter, { envoy, log }: FrontOptions): Promise<Envoy | null> {
  return envoy === undefined ? null : startEnvoy(envoy, limiter, log)
}

function startTls(files: CertificateFiles, { server, http2 }: Gateway, log: WriteLine): Promise<TlsFront> {
  return createTlsFront({
    files,
    http1: server,
    http2,
    onReload(error) {
      if (error === null) return log(`${files.cert}: reloaded`)
      const { message: cause } = error
      const consequence = 'the last good certificate stays'
      log(`${files.cert}: NOT in use, ${consequence}: ${cause}`, { level: 'error', cause, consequence })
    },
  })
}

async function startDemo(closers: Closers): Promise<UpstreamConfig> {
  const server = createDemoUpstream()
  const at = { host: LOOPBACK, port: 0, hostFlag: '--host', portFlag: '--upstream' }
  // Of this process alone: one that ends must not take the answers of the others with it.
  const port = await listen(server, { ...at, exclusive: true })
  // Only the gateway is connected to it, and that has closed by then.
  closers.push(() => server.close().closeAllConnections())
  return upstreamOf(`http://${LOOPBACK}:${port}`)
}
