import {
  describeValue,
  loadSettings,
  parseUpstream,
  type Settings,
  type UpstreamConfig,
  upstreamOf,
} from 'headgate/config'
import type { RedisStore, RedisStoreOptions } from 'headgate/redis'
import { createStatistics } from 'headgate/statistics'
import type { CertificateFiles } from '../http/tls-front.js'
import { createRedisStore } from '../redis/connect.js'
import { startService } from '../service.js'
import { type AdminFlags, adminOptions } from './admin-flags.js'
import { type AlertFlags, alertOptions } from './alert-flags.js'
import { banner } from './banner.js'
import { type BoundFlags, boundsOf } from './bound-flags.js'
import { type EnvoyFlags, envoyOptions } from './envoy-flags.js'
import { fleetOf, withService } from './fleet.js'
import { inOption } from './in-option.js'
import { openConfig } from './live-config.js'
import { readPem } from './read-pem.js'
import { type RedisFlags, type RedisSettings, redisSettings } from './redis-flags.js'
import { createServerLog, type LogFormat } from './server-log.js'
import { stopSignal } from './stop-signal.js'
import { subjectSecret } from './subject-secret.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

/** The flags of `headgate serve`, as they were typed. */
export interface ServeFlags extends BoundFlags, RedisFlags, AdminFlags, AlertFlags, EnvoyFlags {
  readonly config?: string
  readonly host: string
  readonly port: number
  readonly upstream?: string
  readonly upstreamCa?: string
  readonly tlsCert?: string
  readonly tlsKey?: string
  readonly service?: string
  readonly subjectSecretFile?: string
  readonly demo?: boolean
  readonly logFormat: LogFormat
  readonly accessLog?: boolean
}

const CONNECT_WITHIN_MS = 5_000

/** Serves until a signal comes, then stops cleanly. */
export async function serve(flags: ServeFlags, terminal: Terminal): Promise<void> {
  const { host, port, demo = false } = flags
  const admin = await adminOptions(flags, process.env)
  const envoy = envoyOptions(flags)
  const alerts = await alertOptions(flags, process.env)
  const stopped = stopSignal()
  // Whoever read our lines may leave; the gateway stays.
  process.stdout.on('error', () => {})
  const { log, logger, access } = createServerLog(flags.logFormat, terminal)
  const settings = loadSettings(process.env)
  const file = flags.config
  const live = await openConfig({ ...(file !== undefined && { file }), demo, settings, log })
  try {
    const config = withService(live.config, flags.service, process.env)
    const upstream = typedUpstream(flags)
    const hasOwn = config.upstream !== null || config.routes.length > 0
    if (upstream === null && !hasOwn && !demo) {
      throw new UsageError(
        'upstream: expected one in the policy file or with --upstream, or --demo; got none',
      )
    }
    const secret = await subjectSecret(flags.subjectSecretFile, process.env)
    // Last of all: it holds on to connections until it is closed.
    const store = storeOf(flags, settings, {
      ...fleetOf(config),
      ...(await redisSettings(flags)),
      logger,
    })
    const limits = store === undefined ? 'kept in this process' : await firstConnection(store)
    const service = await startService({
      config,
      host,
      port,
      admin,
      alerts,
      bounds: boundsOf(flags),
      tls: await tlsFiles(flags),
      upstream,
      ...(flags.upstreamCa !== undefined && { upstreamCa: await readPem('--upstream-ca', flags.upstreamCa) }),
      demo,
      log,
      configState: live.state,
      ...(flags.accessLog && { onAccess: access }),
      ...(store && { store }),
      ...(envoy && { envoy }),
      ...(secret !== null && { subject: { secret } }),
    })
    live.onChange(service.apply)
    const isDemo = upstream === null && !hasOwn
    log(banner(service, { isDemo, limits, isOpen: admin.tokens.length === 0 }))
    const signal = await stopped
    log(`${signal}: finishing what is under way`)
    await service.stop()
    log('stopped')
  } finally {
    live.close()
  }
}

/**
 * Waits for Redis, so that the first requests are decided there. A Redis that is away holds nobody up for long: until it
 * comes, each request is decided by its failure mode.
 */
async function firstConnection(store: RedisStore): Promise<string> {
  if (await store.ready({ timeoutMs: CONNECT_WITHIN_MS })) return 'shared through Redis'
  return `shared through Redis, which has not answered within ${CONNECT_WITHIN_MS / 1000} s: until it does, each request is decided without it`
}

/** Where the flag, then the environment, says Redis is. Null: the limits are kept in this process. */
function storeOf(
  { redis }: ServeFlags,
  settings: Settings,
  options: RedisSettings & RedisStoreOptions,
): RedisStore | undefined {
  const url = redis ?? (settings.distributed ? settings.redisUrl : null)
  if (url === null) return undefined
  return inOption(redis === undefined ? 'RATE_LIMIT_REDIS_URL' : '--redis', () =>
    createRedisStore({ url, ...options, statistics: createStatistics({ sampleArrivals: true }) }),
  )
}

/** Both or none; what cannot be read is said by the flag's name. */
async function tlsFiles({ tlsCert, tlsKey }: ServeFlags): Promise<CertificateFiles | undefined> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined) throw new UsageError('--tls-cert: expected one beside --tls-key; got none')
  if (tlsKey === undefined) throw new UsageError('--tls-key: expected one beside --tls-cert; got none')
  await readPem('--tls-cert', tlsCert)
  await readPem('--tls-key', tlsKey)
  return { cert: tlsCert, key: tlsKey }
}

function typedUpstream({ upstream }: ServeFlags): UpstreamConfig | null {
  if (upstream === undefined) return null
  if (parseUpstream(upstream) !== null) return upstreamOf(upstream)
  // What stands before an @ may be a password.
  const got = upstream.includes('@') ? 'one with an @' : describeValue(upstream)
  throw new UsageError(
    `--upstream: expected http://host:port or https://host:port without path, query or credentials; got ${got}`,
  )
}
