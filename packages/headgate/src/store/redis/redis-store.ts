import { systemClock, systemTimers } from '../../clock.js'
import { unexpected } from '../../errors.js'
import { withDenyCache } from '../guard/deny-cache.js'
import { type GuardOptions, guardStore, type StoreHealth } from '../guard/guarded-store.js'
import { shortWaysOf } from '../short-ways.js'
import type { Store } from '../store.js'
import { putOf, storeWith } from '../waiter.js'
import type { RedisClient } from './connection-of.js'
import { type DirectStoreOptions, directRedisStore, type Time } from './direct-store.js'

export interface RedisStoreOptions extends DirectStoreOptions, GuardOptions {
  /**
   * Answer a client that Redis has just denied without asking again, until it may come back and for one second at
   * most. Default true.
   */
  readonly denyCache?: boolean
}

/** The Redis store: gives every request a decision, also while Redis does not. */
export interface RedisStore extends Store {
  /** Settles when it is connected and has looked at the server. */
  ready(): Promise<void>
  /** Which nodes are not asked, and how many requests were decided without them. */
  health(): StoreHealth
}

/** What the store takes from the world around it. A simulation puts a world of its own in its place. */
export interface World extends Time {
  readonly random: () => number
  log(line: string): void
}

const realWorld: World = {
  clock: systemClock,
  timers: systemTimers,
  random: Math.random,
  log: line => console.warn(`[headgate] ${line}`),
}

/** Enough for every client a flood comes from, and a few megabytes at most. */
const DENIED_SUBJECTS = 10_000

/**
 * Limits shared by every process that uses the same Redis, decided there by one atomic script, on the server's clock.
 * A client handed in is duplicated with options under which no lost reply is ever charged twice. When Redis is slow,
 * frozen or gone, every request is still decided within the deadline, by the failure mode.
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): RedisStore {
  return redisStoreIn(realWorld, client, options)
}

/** The same in a given world. */
export function redisStoreIn(world: World, client: RedisClient, options: RedisStoreOptions): RedisStore {
  const direct = directRedisStore(client, options, world)
  const member = world.random().toString(36).slice(2)
  const guarded = guardStore(direct, options, {
    nodeOf: direct.nodeOf,
    deadlineMs: direct.deadlineMs,
    replaceConnection: direct.replaceConnection,
    onConnected: direct.onConnected,
    heartbeat: direct.heartbeatOf(member),
    isEvictionUnsafe: direct.isEvictionUnsafe,
    ...world,
  })
  const maxSubjects = parseDenyCache(options.denyCache)
  // A denial lasts by the server's clock; one that a test hands in does not run as ours does.
  const clock = { ...world.clock, ...(options.testClockUs && { nowUs: options.testClockUs }) }
  const cached = maxSubjects === 0 ? guarded : withDenyCache(guarded, { clock, maxSubjects })
  const whole = { ...guarded, ...cached, control: direct.control, ready: direct.ready }
  return storeWith(putOf(cached), whole, shortWaysOf(cached))
}

/** Subjects whose denials are remembered; none when it is off. */
function parseDenyCache(denyCache: unknown): number {
  if (denyCache === undefined || denyCache === true) return DENIED_SUBJECTS
  if (denyCache === false) return 0
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'denyCache', 'true or false', denyCache)
}
