/**
 * Examines a Redis as an operator would before putting limits on it: what is fine, what will cause trouble, what
 * fails.
 */
import { type Config, createLimiter, slidingWindowCounter, slidingWindowLog, tokenBucket } from 'headgate'
import { defineConfig } from 'headgate/config'
import { functionLibraryCode, type RedisStore } from 'headgate/redis'
import type { RedisNode } from './nodes.js'

export interface Finding {
  readonly check: string
  readonly state: 'ok' | 'warn' | 'fail'
  readonly text: string
}

const OLDEST = [6, 2] as const
const PINGS = 20
/** Decisions are given up after 30 ms by default; a third of that leaves little room. */
const SLOW_MS = 10
const CLOCK_OFF_MS = 1_000
const NOT_ALLOWED = /NOPERM|can't run this command/

/** Asks one node about itself. If its user may not ask, the report says so and continues. */
export async function examineNode(node: RedisNode, nowMs: () => number): Promise<Finding[]> {
  const info = await node.send('INFO').then(String, () => null)
  const findings = [await latency(node), await clock(node, nowMs)]
  if (info === null) findings.push({ check: 'info', state: 'ok', text: 'this user may not run INFO' })
  else findings.push(version(info), eviction(info))
  findings.push(await functions(node))
  return findings
}

async function latency(node: RedisNode): Promise<Finding> {
  const times: number[] = []
  for (let index = 0; index < PINGS; index++) {
    const began = performance.now()
    // Every decision is a script; PING is not allowed to the minimal user of the guide.
    await node.send('EVAL', 'return 1', '0').catch(() => {})
    times.push(performance.now() - began)
  }
  times.sort((one, other) => one - other)
  const median = times[PINGS / 2] as number
  const text = `${median.toFixed(1)} ms a call, the longest of ${PINGS} took ${(times.at(-1) as number).toFixed(1)} ms`
  if (median <= SLOW_MS) return { check: 'latency', state: 'ok', text }
  return { check: 'latency', state: 'warn', text: `${text}; decisions are given up after 30 ms by default` }
}

/** Decisions use Redis's clock; `resetAt` in headers is only as good as its agreement with the clients'. */
async function clock(node: RedisNode, nowMs: () => number): Promise<Finding> {
  const before = nowMs()
  const reply = await node.send('TIME').catch(() => null)
  if (!Array.isArray(reply)) return { check: 'clock', state: 'ok', text: 'this user may not run TIME' }
  const there = Number(reply[0]) * 1_000 + Number(reply[1]) / 1_000
  const offMs = there - (before + nowMs()) / 2
  const text = `${Math.abs(offMs).toFixed(0)} ms ${offMs < 0 ? 'behind' : 'ahead of'} this machine's`
  return { check: 'clock', state: Math.abs(offMs) > CLOCK_OFF_MS ? 'warn' : 'ok', text }
}

function version(info: string): Finding {
  const found = field(info, 'redis_version') ?? 'unknown'
  const name = field(info, 'server_name') === 'valkey' ? 'Valkey' : 'Redis'
  const shown = field(info, 'valkey_version') ?? found
  const [major = 0, minor = 0] = found.split('.').map(Number)
  const isOld = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])
  const text = `${name} ${shown}${isOld ? `; expected ${OLDEST.join('.')} or later` : ''}`
  return { check: 'version', state: isOld ? 'fail' : 'ok', text }
}

function eviction(info: string): Finding {
  const policy = field(info, 'maxmemory_policy') ?? 'unknown'
  if (policy === 'noeviction') return { check: 'eviction', state: 'ok', text: policy }
  const text = `maxmemory-policy ${policy}: when memory is short limits are deleted and given anew; use noeviction`
  return { check: 'eviction', state: 'warn', text }
}

async function functions(node: RedisNode): Promise<Finding> {
  const library = /name=(\S+)/.exec(functionLibraryCode())?.[1] as string
  const check = 'functions'
  try {
    const found = await node.send('FUNCTION', 'LIST', 'LIBRARYNAME', library)
    const isLoaded = Array.isArray(found) && found.length > 0
    return { check, state: 'ok', text: isLoaded ? `${library} is loaded` : 'not loaded; scripts are used' }
  } catch {
    return { check, state: 'ok', text: 'not to be had for this user or version; scripts are used' }
  }
}

/**
 * Makes a decision on every kind of limit, as the fleet would, and refunds it. Short windows leave nothing behind
 * for long.
 */
export async function examineDecisions(
  store: RedisStore,
  { prefix, tenant }: Pick<Config, 'prefix' | 'tenant'>,
  id: string,
): Promise<Finding[]> {
  const limiter = createLimiter({
    store,
    onWarning: () => {},
    config: defineConfig({
      ...(prefix !== undefined && { prefix }),
      ...(tenant !== undefined && { tenant }),
      policies: {
        doctor: [
          slidingWindowLog({ limit: 2, window: '1s' }),
          slidingWindowCounter({ limit: 2, window: '1s' }),
          slidingWindowCounter({ limit: 2, window: '1s', buckets: 6 }),
          tokenBucket({ capacity: 2, refillPerSecond: 10 }),
        ],
      },
    }),
  })
  const subject = `headgate-doctor:${id}` as const
  const policy = { policy: 'doctor' } as const
  try {
    return [
      await attempt('decisions', 'every kind of limit decides', async () => {
        const decision = await limiter.check(subject, policy)
        await limiter.refund(decision)
        await limiter.reset(subject, policy)
      }),
      await attempt('control', 'switches and overrides can be read', async () => {
        await limiter.control.read()
        await limiter.overrides.read()
      }),
    ]
  } finally {
    await limiter.close()
  }
}

async function attempt(check: string, sound: string, work: () => Promise<void>): Promise<Finding> {
  try {
    await work()
    return { check, state: 'ok', text: sound }
  } catch (error) {
    const { message } = error as Error
    const hint = NOT_ALLOWED.test(message) ? '; docs/guide/redis.md lists the rights that a user needs' : ''
    return { check, state: 'fail', text: `${message}${hint}` }
  }
}

function field(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1]
}
