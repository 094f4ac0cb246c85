import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from 'headgate'
import { createLimiter, type Decision, type Store, type SubjectOptions } from 'headgate'
import { createClientAddress } from 'headgate/identify'
import { fleetRecords } from 'headgate/internal'
import { createStatistics } from 'headgate/metrics'
import type { RedisStore } from 'headgate/redis'
import { createAdminServer } from '../admin/admin-server.js'
import type { ConfigCounts } from '../admin/probes.js'
import type { Token } from '../admin/tokens.js'
import { pageEndpoints } from '../dashboard/page-endpoints.js'
import { readPageFiles } from '../dashboard/page-files.js'
import { forwardAuthEndpoint } from '../forward-auth/forward-auth-endpoint.js'
import { gracefulClose } from '../http/close-gracefully.js'
import { listen, urlOf } from '../http/listen.js'
import type { WriteLine } from '../log/write-line.js'
import type { AlertOptions } from '../observe/alert-rules.js'
import type { PolicyText } from '../observe/policy-endpoints.js'
import { startStats } from '../observe/start-stats.js'
import type { UsagePages } from '../redis/usage-pages.js'
import { adminEndpoints } from './admin-endpoints.js'
import { type Deciding, type Front, type FrontOptions, startFront } from './front.js'

/** The port for decisions, operators, probes and metrics. */
export interface AdminOptions {
  /** A loopback address if there are no tokens: then everybody who reaches it may change every limit. */
  readonly host: string
  readonly port: number
  readonly tokens: readonly Token[]
  /** Reads them again, because their files may have changed. */
  readonly readTokens?: () => Promise<readonly Token[]>
  /** Names by which it may be called beside addresses. */
  readonly names: readonly string[]
  /** Whether metrics need no token. */
  readonly metricsPublic: boolean
  /** Whether subjects are shown in full instead of masked. */
  readonly showSubjects: boolean
}

/** The parts by which a process decides requests. */
export interface DecidingOptions {
  readonly config: Config
  readonly log: WriteLine
  /** Where the limits are kept. Default: in this process. */
  readonly store?: Store | RedisStore
  /** How callers are named in the store. */
  readonly subject?: SubjectOptions
}

export interface ServiceOptions extends FrontOptions, DecidingOptions {
  readonly admin: AdminOptions
  /** When operators are alerted, and how. */
  readonly alerts: AlertOptions
  configState(): ConfigCounts
  /** Makes what reads the usage of all callers. Default: it is kept in this process alone. */
  readonly usagePages?: (config: () => Config) => UsagePages
  /** The text of the policy file. Default: there is none. */
  readonly policyText?: () => Promise<PolicyText | null>
  /** Opens the gateway's port and Envoy's. Default: in this process. */
  readonly openFront?: (deciding: Deciding, options: FrontOptions) => Promise<Front>
}

/** A gateway and a decision API that are listening. */
export interface Service extends Pick<Front, 'gatewayUrl' | 'grpcAddress' | 'upstreamUrl' | 'apply'> {
  readonly adminUrl: string
  /** Null if the page has not been built. */
  readonly dashboardUrl: string | null
  /** The decision that a client would get with its first request. */
  readonly example: Decision
  /**
   * Is not ready for the drain delay and still serves; then stops accepting, finishes requests in flight for at most the
   * drain timeout, and closes everything. `now` ends the waiting.
   */
  stop(now?: AbortSignal): Promise<void>
}

const API_STOP_WITHIN_MS = 400
/** Reserved for documentation: no client ever comes from it. */
const NOBODY = 'ip:192.0.2.1'

/** Starts the service; on failure closes what it had opened and throws a `ListenError`. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { config, log, admin, openFront = startFront } = options
  const deciding = createDeciding(options)
  const { limiter } = deciding
  const closers: ((now?: AbortSignal) => unknown)[] = [() => limiter.close()]
  let stopping = false
  const close = async (now?: AbortSignal) => {
    // In the reverse order of opening, so that dependencies close last.
    for (const closeOne of closers.splice(0).reverse()) await closeOne(now)
  }
  const stop = async (now?: AbortSignal) => {
    stopping = true
    // Load balancers learn that it is not ready, and send new connections elsewhere.
    await sleep(options.drain.delayMs, undefined, { signal: now }).catch(() => {})
    await close(now)
  }

  try {
    const front = await openFront(deciding, options)
    let inForce = config
    let clientAddress = createClientAddress(config)
    const configState = () => bothStates(options.configState(), front.envoyConfigState())
    const stats = startStats({
      ...options,
      configState,
      limiter,
      statistics: front.statistics,
      vitals: front.vitals,
      config: () => inForce,
    })
    closers.push(() => stats.close())
    const usagePages = options.usagePages?.(() => inForce) ?? null
    closers.push(() => usagePages?.close())
    const own = adminEndpoints({
      limiter,
      usagePages,
      config: () => inForce,
      policyText: options.policyText ?? (async () => null),
      stats,
      log,
      statistics: front.statistics,
      arrivals: front.arrivals,
      upstreams: { read: front.upstreams },
      answers: front.answers,
      tokens: front.tokens,
      process: front.process,
      setControlHere: front.setControlHere,
      metricsPublic: admin.metricsPublic,
      configState,
      workers: front.workers,
      isServing: () => !stopping,
    })
    const page = pageEndpoints(await readPageFiles())
    const forwardAuth = forwardAuthEndpoint({ limiter, log, identify: front.identify })
    const api = createAdminServer({
      ...admin,
      endpoints: [...own, ...page, forwardAuth, ...front.endpoints],
      log,
      clientAddress: () => clientAddress,
      trail: fleetRecords(options.store)?.changes ?? null,
    })
    const closeApi = gracefulClose(api.server, api.connections)
    // Health is answered to the last, with 503 as soon as stopping began.
    closers.push(() => closeApi({ timeoutMs: API_STOP_WITHIN_MS }), front.stop)
    const adminPort = await listen(api.server, {
      ...admin,
      hostFlag: '--admin-host',
      portFlag: '--admin-port',
    })
    const { gatewayUrl, grpcAddress, upstreamUrl } = front
    const adminUrl = urlOf(admin.host, adminPort)
    return {
      gatewayUrl,
      grpcAddress,
      upstreamUrl,
      stop,
      async apply(changed) {
        await front.apply(changed)
        inForce = changed
        clientAddress = createClientAddress(changed)
      },
      adminUrl,
      dashboardUrl: page.length === 0 ? null : `${adminUrl}/`,
      example: await limiter.peek(NOBODY, config.default),
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Stale if either file is, so that one look tells whether what is on disk is in use. */
function bothStates(one: ConfigCounts, other: ConfigCounts | null): ConfigCounts {
  if (other === null) return one
  const isStale = one.config === 'stale' || other.config === 'stale'
  return {
    config: isStale ? 'stale' : 'current',
    rejectedConfigs: one.rejectedConfigs + other.rejectedConfigs,
  }
}

/** Creates the limiter of a process, and the statistics in which its decisions are counted. */
export function createDeciding({ config, log, store, subject }: DecidingOptions): Deciding {
  const statistics = store?.statistics ?? createStatistics({ sampleArrivals: true })
  const limiter = createLimiter({
    statistics,
    config,
    onWarning: line => log(line, { level: 'warn' }),
    ...(store && { store }),
    ...(subject && { subject }),
  })
  return { limiter, statistics }
}
