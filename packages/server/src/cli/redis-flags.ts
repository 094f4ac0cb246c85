/** The flags of `headgate serve` for Redis: where it is, and when to give up on it. */
import type { Command } from 'commander'
import { mistakeAt } from 'headgate/internal'
import type { RedisStoreOptions } from 'headgate/redis'
import { wholeNumber } from './number-options.js'
import { readPem } from './read-secrets.js'
import { UsageError } from './usage-error.js'

/** The flags as typed. */
export interface RedisFlags {
  readonly redis?: string
  readonly redisCa?: string
  readonly deadline: number
  readonly breakerFailures: number
  readonly probeAfter: number
  readonly maxCalls?: number
  readonly share?: string
  readonly functions?: boolean
}

/** The options of a Redis store, except for the fleet it belongs to. */
export type RedisSettings = Pick<
  RedisStoreOptions,
  'deadlineMs' | 'breakerFailures' | 'probeAfterMs' | 'maxCallsPerSecond' | 'share' | 'use'
> & { readonly ca?: string }

const SHARE = /^(\d{1,7})\/(\d{1,7})$/

export function addRedisFlags(command: Command): void {
  command
    .option('--redis <url>', 'share the limits through Redis (default: keep them in this process)')
    .option('--redis-ca <file>', 'an authority to trust for rediss://, in PEM')
    .option(
      '--deadline <ms>',
      'how long Redis may take before a request is decided without it',
      wholeNumber(1, 60_000),
      30,
    )
    .option(
      '--breaker-failures <number>',
      'failed calls in a row that open the breaker',
      wholeNumber(1, 1_000),
      5,
    )
    .option('--probe-after <ms>', 'the longest time until it is tried again', wholeNumber(10, 30_000), 500)
    .option(
      '--max-calls <number>',
      'the most calls to Redis per second; requests beyond that are decided without it',
      wholeNumber(1, 1_000_000_000),
    )
    .option(
      '--share <part/of>',
      "this region's part of every limit, such as 1/3, if each region has its own Redis",
    )
    .option('--functions', 'use Redis Functions instead of scripts (Redis 7)')
}

/** Rejects flags that only a Redis would give a meaning, if there is none. `isGiven` tells flags from defaults. */
export function rejectWithoutRedis(isGiven: (name: keyof RedisFlags) => boolean): void {
  const name = BESIDE_REDIS.find(isGiven)
  if (name === undefined) return
  const flag = `--${name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`
  throw new UsageError({
    field: flag,
    expected: 'together with --redis (or RATE_LIMIT_REDIS_URL): without it this has no effect',
  })
}

const BESIDE_REDIS = [
  'redisCa',
  'deadline',
  'breakerFailures',
  'probeAfter',
  'maxCalls',
  'share',
  'functions',
] as const

export async function redisSettings(flags: RedisFlags): Promise<RedisSettings> {
  const { redisCa, deadline, breakerFailures, probeAfter, maxCalls, share, functions } = flags
  return {
    deadlineMs: deadline,
    breakerFailures,
    probeAfterMs: probeAfter,
    ...(maxCalls !== undefined && { maxCallsPerSecond: maxCalls }),
    ...(share !== undefined && { share: parseShare(share) }),
    ...(functions && { use: 'functions' as const }),
    ...(redisCa !== undefined && { ca: await readPem('--redis-ca', redisCa) }),
  }
}

/** The store validates the numbers. */
function parseShare(text: string): NonNullable<RedisStoreOptions['share']> {
  const [, part, of] = SHARE.exec(text) ?? []
  if (part !== undefined && of !== undefined) return { part: Number(part), of: Number(of) }
  throw new UsageError(mistakeAt('--share', 'a part and the whole, such as 1/3', text))
}
