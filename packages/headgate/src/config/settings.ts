/**
 * Settings from the environment, which add to or replace a policy file. They are fewer and simpler: one limit for
 * every caller, and where Redis is.
 */
import type { Limit } from '../algorithms/algorithm.js'
import { slidingWindowCounter, slidingWindowCounterAlgorithm } from '../algorithms/sliding-window-counter.js'
import { tokenBucket, tokenBucketAlgorithm } from '../algorithms/token-bucket.js'
import type { Config, PolicyConfig } from '../policy/config.js'
import { type Complaint, IssueList } from './config-error.js'
import { defineConfig } from './define-config.js'
import { describeValue } from './describe-value.js'
import { readLimit } from './file/limit.js'
import { objectionTo, Place, type Report } from './shape/shape.js'

export interface Settings {
  /** Whether limits are shared through Redis. */
  readonly distributed: boolean
  /** The URL of Redis; may contain a password. */
  readonly redisUrl: string | null
  /** The path of the policy file. */
  readonly rulesPath: string | null
  /** The limit of every caller that nothing else covers. */
  readonly policy: PolicyConfig | null
}

/** Variables by name, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>

const SOURCE = 'environment'
/** The name of the policy that the environment describes. */
const POLICY = 'global'
const DEFAULT_CAPACITY = 60
const DEFAULT_REFILL_PER_SECOND = 1
const BUCKET = ['RATE_LIMIT_GLOBAL_CAPACITY', 'RATE_LIMIT_GLOBAL_REFILL_PER_SEC'] as const
const WINDOW = ['RATE_LIMIT_REQUESTS', 'RATE_LIMIT_DURATION', 'RATE_LIMIT_BURST'] as const
const SWITCH = new Map([
  ...['on', 'true', '1', 'yes'].map(word => [word, true] as const),
  ...['off', 'false', '0', 'no'].map(word => [word, false] as const),
])
const REDIS_URL = /^rediss?(-cluster|-sentinel)?:\/\/./

/**
 * Reads the settings of the environment. An empty variable counts as unset. Throws a `ConfigError` that lists every
 * bad variable by name.
 */
export function loadSettings(environment: Environment): Settings {
  const issues = new IssueList()
  const reject = (name: string, complaint: Complaint) => issues.add([name], complaint, 'value')
  const given = (name: string) => environment[name]?.trim() || undefined
  const settings = {
    ...readRedis(given, reject),
    rulesPath: given('RATE_LIMIT_RULES_PATH') ?? null,
    policy: readPolicy(given, reject),
  }
  if (!issues.isEmpty) throw issues.toError(SOURCE)
  return settings
}

/**
 * Combines the environment with a policy file: a limit in the environment replaces the file's default. With Redis
 * but neither a file nor a limit, callers get 60 requests, refilled at one per second.
 */
export function configWithSettings(settings: Settings, file: Config | null): Config {
  const policy = settings.policy ?? (file === null && settings.distributed ? defaultPolicy() : null)
  const config = file ?? defineConfig({})
  if (policy === null) return config
  return { ...config, policies: { ...config.policies, [POLICY]: policy }, default: { policy: POLICY } }
}

function defaultPolicy(): PolicyConfig {
  return {
    limits: [tokenBucket({ capacity: DEFAULT_CAPACITY, refillPerSecond: DEFAULT_REFILL_PER_SECOND })],
  }
}

type Given = (name: string) => string | undefined
type Reject = (name: string, complaint: Complaint) => void

function readRedis(given: Given, reject: Reject): Pick<Settings, 'distributed' | 'redisUrl'> {
  const word = given('ENABLE_DISTRIBUTED_RATE_LIMITING')
  const url = given('RATE_LIMIT_REDIS_URL')
  const distributed = SWITCH.get((word ?? 'off').toLowerCase())
  if (distributed === undefined) {
    reject('ENABLE_DISTRIBUTED_RATE_LIMITING', { expected: 'on or off', got: describeValue(word) })
  }
  if (distributed && url === undefined) {
    const expected = 'the URL of Redis, since ENABLE_DISTRIBUTED_RATE_LIMITING is on'
    reject('RATE_LIMIT_REDIS_URL', { expected, got: 'nothing' })
  }
  if (url !== undefined && !REDIS_URL.test(url)) {
    const expected = 'redis://, rediss://, redis-cluster:// or redis-sentinel:// and a host'
    reject('RATE_LIMIT_REDIS_URL', { expected, got: 'something else' })
  }
  return { distributed: distributed ?? false, redisUrl: url ?? null }
}

/** Reads the one limit, each of its numbers under the name of its variable. */
function readPolicy(given: Given, reject: Reject): PolicyConfig | null {
  const [window] = WINDOW.filter(name => given(name) !== undefined)
  const [bucket] = BUCKET.filter(name => given(name) !== undefined)
  if (window !== undefined && bucket !== undefined) {
    const expected = `not to be set beside ${window}: one of them says what the limit is`
    reject(bucket, { expected, got: describeValue(given(bucket)) })
  }
  if (window === undefined && bucket === undefined) return null
  const limits = window === undefined ? readBucket(given, reject) : readWindow(given, reject)
  return limits === null ? null : { limits }
}

function readBucket(given: Given, reject: Reject): readonly Limit[] | null {
  const [capacityName, refillName] = BUCKET
  const written = {
    capacity: readNumber(given(capacityName)) ?? DEFAULT_CAPACITY,
    refillPerSecond: readNumber(given(refillName)) ?? DEFAULT_REFILL_PER_SECOND,
  }
  const report: Report = ([field], complaint) =>
    reject(field === 'capacity' ? capacityName : refillName, complaint)
  const read = readLimit(written, tokenBucketAlgorithm, Place.top(NO_NAMES, report))
  return read === undefined ? null : [read]
}

function readWindow(given: Given, reject: Reject): readonly Limit[] | null {
  const [requestsName, durationName, burstName] = WINDOW
  const written = {
    limit: readNumber(given(requestsName)),
    window: readNumber(given(durationName)),
  }
  const report: Report = ([field], complaint) =>
    reject(field === 'limit' ? requestsName : durationName, complaint)
  const sustained = readLimit(written, slidingWindowCounterAlgorithm, Place.top(NO_NAMES, report))
  const burst = readNumber(given(burstName))
  if (burst === undefined) return sustained === undefined ? null : [sustained]
  const objection = objectionTo(() => slidingWindowCounter({ limit: burst as number, window: 1 }))
  if (objection !== null) reject(burstName, objection)
  else if (burst === 0) reject(burstName, { expected: 'at least 1, or not to be set', got: '0' })
  else if (sustained !== undefined) return withBurst(sustained, burst as number)
  return null
}

/** Keeps both numbers, as a tier does: the burst, and the sustained rate. */
function withBurst(sustained: Limit, burst: number): readonly Limit[] {
  const { limit, quota } = sustained
  // A ban has nothing to refill.
  if (limit === 0) return [sustained]
  const both = Object.freeze({ ...quota, burst })
  const counter = sustained.algorithm.resize(sustained, Math.max(limit, burst), 1)
  const bucket = tokenBucket({ capacity: burst, refillPerSecond: (limit / quota.windowUs) * 1e6 })
  return [
    { ...counter, quota: both },
    { ...bucket, quota: both },
  ]
}

const NO_NAMES = { tiers: null, policies: null }

/** A text that is not a number is returned as it is, and the library rejects it. */
function readNumber(text: string | undefined): unknown {
  return text !== undefined && /^\d+(\.\d+)?$/.test(text) ? Number(text) : text
}
