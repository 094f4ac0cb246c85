import { invalidOption } from '../../errors/headgate-error.js'
import { wholeNumber } from '../../errors/whole-number.js'
import { encodeTenant } from '../../subject/key.js'
import { parseRegionShare, type RegionShare } from '../remote/region-share.js'
import { parseRemoteOptions, type RemoteOptions, type RemoteSettings } from '../remote/remote-options.js'
import type { StoreWarning } from './inspect.js'

export interface RedisStoreOptions extends RemoteOptions {
  /** The first part of every key. Default `ratelimit`. */
  readonly prefix?: string
  /** Separates the limits of several products on one Redis. */
  readonly tenant?: string
  /**
   * The program of this process: while Redis is away it shares the limits with processes of the same service, and
   * with those that name none. Default: the tenant.
   */
  readonly service?: string
  /**
   * How long the first requests wait for the connection of a new store, counted from its creation. Default 1,000.
   * Ends early if connecting fails.
   */
  readonly connectTimeoutMs?: number
  /** Run as scripts (`EVALSHA`, the default) or as Redis Functions (`FCALL`, Redis 7). */
  readonly use?: 'scripts' | 'functions'
  /** Use the client itself instead of a duplicate with safe options. */
  readonly shared?: boolean
  /** This store's part of every limit, if several regions have a Redis each. */
  readonly share?: RegionShare
  /**
   * Send checks of the same turn of the event loop as one call. Default true. `maxChecks` (default 64) bounds a
   * call, and with it the time for which Redis answers nobody else.
   */
  readonly batch?: boolean | { readonly maxChecks?: number }
  /**
   * Answer a client that Redis has just denied without asking again, until it may come back and for one second at
   * most. Default true.
   */
  readonly denyCache?: boolean
  /** Called instead of the logger with what is unsafe about the set-up. */
  readonly onWarning?: (warning: StoreWarning) => void
  /**
   * The server's time in microseconds, for this library's own tests. Left out: the server's own clock.
   * @internal
   */
  readonly testClockUs?: () => number
}

/** The parsed options of a Redis store. */
export interface RedisSettings extends RemoteSettings {
  readonly prefix: string
  readonly tenant: string
  readonly service: string
  readonly connectTimeoutMs: number
  readonly use: 'scripts' | 'functions'
  readonly shared: boolean
  warn(warning: StoreWarning): void
  readonly testClockUs: (() => number) | null
}

const PREFIX = /^[A-Za-z0-9_.-]{1,32}$/
const SERVICE = /^[A-Za-z0-9_.-]{1,64}$/
const MAX_CHECKS = 64
/** Enough for every client of a flood, and a few megabytes at most. */
const DENIED_SUBJECTS = 10_000

export function parseRedisOptions(options: RedisStoreOptions): RedisSettings {
  const { prefix = 'ratelimit', tenant = '', use = 'scripts', share } = options
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    throw invalidOption('prefix', 'up to 32 letters, digits, _ . or -', prefix)
  }
  if (typeof tenant !== 'string') {
    throw invalidOption('tenant', 'a string', tenant)
  }
  if (use !== 'scripts' && use !== 'functions') {
    throw invalidOption('use', "'scripts' or 'functions'", use)
  }
  const settings = parseRemoteOptions(options)
  return {
    ...settings,
    prefix,
    tenant,
    use,
    service: parseService(options.service, tenant),
    connectTimeoutMs: wholeNumber(options.connectTimeoutMs ?? 1_000, 'connectTimeoutMs', 0, 60_000),
    shared: options.shared === true,
    share: share === undefined ? null : parseRegionShare(share),
    maxChecks: parseBatch(options.batch),
    deniedSubjects: parseDenyCache(options.denyCache),
    warn: options.onWarning ?? (({ code, message }) => settings.logger.warn({ code }, `${code}: ${message}`)),
    testClockUs: options.testClockUs ?? null,
  }
}

function parseService(service: unknown, tenant: string): string {
  if (service === undefined) return encodeTenant(tenant)
  if (typeof service === 'string' && SERVICE.test(service)) return service
  throw invalidOption('service', 'up to 64 letters, digits, _ . or -', service)
}

/** Returns the most checks per call: 1 makes every question a call of its own. */
function parseBatch(batch: unknown): number {
  if (batch === undefined || batch === true) return MAX_CHECKS
  if (batch === false) return 1
  if (typeof batch !== 'object' || batch === null) {
    throw invalidOption('batch', 'true, false or { maxChecks }', batch)
  }
  const { maxChecks = MAX_CHECKS } = batch as { maxChecks?: unknown }
  return wholeNumber(maxChecks, 'batch.maxChecks', 1, 1_000)
}

/** Returns how many subjects' denials are remembered; 0 if it is off. */
function parseDenyCache(denyCache: unknown): number {
  if (denyCache === undefined || denyCache === true) return DENIED_SUBJECTS
  if (denyCache === false) return 0
  throw invalidOption('denyCache', 'true or false', denyCache)
}
