/**
 * Settings from the environment, which add to or replace a policy file. They are fewer and simpler: one limit for
 * every caller, and where Redis is.
 */
import type { Limit } from '../algorithms/algorithm.js'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.js'
import { tokenBucket } from '../algorithms/token-bucket.js'
import type { Config, PolicyConfig } from '../policy/config.js'
import { type Complaint, IssueList } from './config-error.js'
import { defineConfig } from './define-config.js'
import { describeValue } from './describe-value.js'
import { objectionTo } from './shape/objection.js'

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
  const reject = (name: string, complaint: Complaint) => issues.add([name], complaint, () => null)
  const given = (name: string) => environment[name]?.trim() || undefined
  const settings = {
    ...readRedis(given, reject),
    rulesPath: given('RATE_LIMIT_RULES_PATH') ?? null,
    policy: readPolicy(given, reject),
  }
  issues.throwIfAny(SOURCE)
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
  const capacity = readNumber(given(capacityName), DEFAULT_CAPACITY)
  const refillPerSecond = readNumber(given(refillName), DEFAULT_REFILL_PER_SECOND)
  const isSound = [
    accept(capacityName, () => tokenBucket({ capacity: capacity as number, refillPerSecond: 1 }), reject),
    accept(
      refillName,
      () => tokenBucket({ capacity: 1, refillPerSecond: refillPerSecond as number }),
      reject,
    ),
  ].every(Boolean)
  if (!isSound) return null
  const options = { capacity: capacity as number, refillPerSecond: refillPerSecond as number }
  return accept(refillName, () => tokenBucket(options), reject) ? [tokenBucket(options)] : null
}

function readWindow(given: Given, reject: Reject): readonly Limit[] | null {
  const [requestsName, durationName, burstName] = WINDOW
  const limit = readNumber(given(requestsName)) as number
  const window = readNumber(given(durationName)) as number
  const burst = readNumber(given(burstName), null) as number | null
  const isSound = [
    accept(requestsName, () => slidingWindowCounter({ limit, window: 1 }), reject),
    accept(durationName, () => slidingWindowCounter({ limit: 1, window }), reject),
    burst === null || accept(burstName, () => slidingWindowCounter({ limit: burst, window: 1 }), reject),
  ].every(Boolean)
  if (!isSound) return null
  if (burst === 0) {
    reject(burstName, { expected: 'at least 1, or not to be set', got: '0' })
    return null
  }
  if (burst === null) return [slidingWindowCounter({ limit, window })]
  return withBurst({ limit, window, burst })
}

/** Keeps both numbers, as a tier does: the burst, and the sustained rate. */
function withBurst({ limit, window, burst }: Record<'limit' | 'window' | 'burst', number>): readonly Limit[] {
  const counter = slidingWindowCounter({ limit: Math.max(limit, burst), window })
  // A ban has nothing to refill.
  if (limit === 0) return [slidingWindowCounter({ limit, window })]
  const bucket = tokenBucket({ capacity: burst, refillPerSecond: (limit / counter.windowUs) * 1e6 })
  const quota = Object.freeze({ limit, windowUs: counter.windowUs, burst })
  return [
    { ...counter, quota },
    { ...bucket, quota },
  ]
}

/** A text that is not a number is returned as it is, and the library rejects it. */
function readNumber(text: string | undefined, leftOut?: number | null): unknown {
  if (text === undefined) return leftOut
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : text
}

function accept(name: string, make: () => unknown, reject: Reject): boolean {
  const objection = objectionTo(make)
  if (objection !== null) reject(name, objection)
  return objection === null
}
