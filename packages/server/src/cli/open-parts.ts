/** The parts that every process of `headgate serve` starts with: its log, the policy file, and the store. */
import type { Config } from 'headgate'
import {
  loadSettings,
  mistakeAt,
  parseUpstream,
  type Settings,
  type UpstreamConfig,
  upstreamOf,
} from 'headgate/internal'
import { createStatistics } from 'headgate/metrics'
import type { RedisStore, RedisStoreOptions } from 'headgate/redis'
import type { CertificateFiles } from '../http/tls-front.js'
import { createServerLog } from '../log/server-log.js'
import type { FrontOptions } from '../service/front.js'
import type { DecidingOptions, ServiceOptions } from '../service/service.js'
import { boundsOf } from './bound-flags.js'
import { drainOf } from './drain-flags.js'
import { envoyOptions } from './envoy-flags.js'
import { fleetOf, withService } from './fleet.js'
import { inOption } from './in-option.js'
import { type LiveConfig, openConfig } from './live-config.js'
import { readPem, subjectSecret } from './read-secrets.js'
import { type RedisSettings, redisSettings } from './redis-flags.js'
import type { ServeFlags } from './serve.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

export interface Parts {
  readonly live: LiveConfig
  /** Whether the built-in upstream answers. */
  readonly isDemo: boolean
  /** Where limits are kept, in words. */
  readonly limits: string
  readonly options: FrontOptions & DecidingOptions & Pick<ServiceOptions, 'usagePages'>
}

/** Enough for a Redis that is there, also in another region. */
const CONNECT_WITHIN_MS = 300

/** Opens them as the flags say. `worker` is the number of this worker; null if the process is not one. */
export async function openParts(
  flags: ServeFlags,
  terminal: Terminal,
  worker: number | null = null,
): Promise<Parts> {
  const { host, port, demo = false } = flags
  const envoy = envoyOptions(flags)
  const { log, logger, access } = createServerLog(flags.logFormat, terminal, worker)
  const settings = loadSettings(process.env)
  const file = flags.config
  const warn = worker === null ? log : () => {}
  const live = await openConfig({ ...(file !== undefined && { file }), demo, settings, log, warn })
  try {
    const config = withService(live.config, flags.service, process.env)
    const upstream = typedUpstream(flags)
    const isDemo = upstream === null && !hasUpstream(config)
    if (isDemo && !demo) {
      throw new UsageError({
        field: 'upstream',
        expected: 'one in the policy file or with --upstream, or --demo',
        got: 'none',
      })
    }
    const secret = await subjectSecret(flags.subjectSecretFile, process.env)
    const { upstreamCa } = flags
    const options = {
      config,
      host,
      port,
      bounds: boundsOf(flags),
      drain: drainOf(flags),
      upstream,
      demo,
      log,
      tls: await tlsFiles(flags),
      ...(upstreamCa !== undefined && { upstreamCa: await readPem('--upstream-ca', upstreamCa) }),
      ...(flags.accessLog && { onAccess: access }),
      ...(envoy && { envoy }),
      ...(secret !== null && { subject: { secret } }),
    }
    // Last of all, because it holds connections until it is closed.
    const redis = await redisOf(flags, settings, {
      ...fleetOf(config),
      ...(await redisSettings(flags)),
      logger,
    })
    if (redis === null) return { live, isDemo, limits: 'kept in this process', options }
    return { live, isDemo, limits: await firstConnection(redis.store), options: { ...options, ...redis } }
  } catch (error) {
    live.close()
    throw error
  }
}

function hasUpstream({ upstream, routes }: Config): boolean {
  return upstream !== null || routes.length > 0
}

/**
 * Waits a moment for Redis, so that the first requests are decided there. An unreachable Redis delays nobody for long:
 * until it comes, each request is decided by its failure mode.
 */
async function firstConnection(store: RedisStore): Promise<string> {
  const shared = 'shared through Redis'
  if (await store.ready({ timeoutMs: CONNECT_WITHIN_MS })) return shared
  return `${shared}, which has not answered yet: until it does, each request is decided without it`
}

/** Opens the Redis of the flag, or else of the environment. Null: the limits are kept in this process. */
async function redisOf(
  { redis }: ServeFlags,
  settings: Settings,
  options: RedisSettings & RedisStoreOptions,
): Promise<(Required<Pick<ServiceOptions, 'usagePages'>> & { readonly store: RedisStore }) | null> {
  const url = redis ?? (settings.distributed ? settings.redisUrl : null)
  if (url === null) return null
  // Loaded on demand: the client is as many files as everything else together.
  const { createRedisStore } = await import('../redis/connect.js')
  const { createUsagePages } = await import('../redis/usage-pages.js')
  const store = inOption(redis === undefined ? 'RATE_LIMIT_REDIS_URL' : '--redis', () =>
    createRedisStore({ url, ...options, statistics: createStatistics({ sampleArrivals: true }) }),
  )
  // What is about decisions is not about reading.
  const { deadlineMs, breakerFailures, probeAfterMs, maxCallsPerSecond, share, logger, ...same } = options
  return { store, usagePages: config => createUsagePages({ redis: { url, ...same }, config }) }
}

/** Both or neither; an unreadable file is reported by its flag. */
async function tlsFiles({ tlsCert, tlsKey }: ServeFlags): Promise<CertificateFiles | undefined> {
  if (tlsCert === undefined && tlsKey === undefined) return undefined
  if (tlsCert === undefined)
    throw new UsageError({ field: '--tls-cert', expected: 'one beside --tls-key', got: 'none' })
  if (tlsKey === undefined)
    throw new UsageError({ field: '--tls-key', expected: 'one beside --tls-cert', got: 'none' })
  await readPem('--tls-cert', tlsCert)
  await readPem('--tls-key', tlsKey)
  return { cert: tlsCert, key: tlsKey }
}

function typedUpstream({ upstream }: ServeFlags): UpstreamConfig | null {
  if (upstream === undefined) return null
  if (parseUpstream(upstream) !== null) return upstreamOf(upstream)
  // The part before an @ may be a password.
  const expected = 'http://host:port or https://host:port without path, query or credentials'
  throw new UsageError(
    upstream.includes('@')
      ? { field: '--upstream', expected, got: 'one with an @' }
      : mistakeAt('--upstream', expected, upstream),
  )
}
