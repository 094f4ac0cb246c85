import type { PendingCheck } from '../../check/pending-check.js'
import type { Statistics } from '../../observe/statistics/statistics.js'
import { systemClock, systemTimers } from '../../time/clock.js'
import type { ControlStore } from '../control-store.js'
import { RemoteStore, type World } from '../remote/remote-store.js'
import { connectionOf, type RedisClient } from './connection-of.js'
import { BESIDE, leaveReports, type OwnReports } from './own-reports.js'
import { redisControl } from './redis-control.js'
import { parseRedisOptions, type RedisStoreOptions } from './redis-options.js'
import { type Beside, createRedisRemote, type ReadyOptions, type RedisRemote } from './redis-remote.js'

const realWorld: World = {
  clock: systemClock,
  timers: systemTimers,
  random: Math.random,
}

/**
 * Creates a store for limits shared by every process on the same Redis, decided there by one atomic script, on the
 * server's clock. The given client is duplicated, or made by the given function, and a lost reply is never charged
 * twice. When Redis is slow, frozen or gone, every request is still decided within the deadline, by the failure mode.
 *
 * @example
 * const limiter = createLimiter({ store: redisStore(new Redis(url)), policies })
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): RedisStore {
  return redisStoreIn(realWorld, client, options)
}

/** The same in a given world. */
export function redisStoreIn(world: World, client: RedisClient, options: RedisStoreOptions): RedisStore {
  const settings = parseRedisOptions(options)
  const connection = connectionOf(client, settings)
  const onDemand = connection.onDemand ? new OnDemand(world) : null
  const ownWorld = onDemand?.world ?? world
  const remote = createRedisRemote(connection, settings, ownWorld)
  return new RedisStore(remote, settings, ownWorld, onDemand)
}

/** The Redis store: gives every request a decision, even while Redis does not. */
export class RedisStore extends RemoteStore {
  readonly control: ControlStore
  readonly statistics?: Statistics
  /**
   * For what operators read of the fleet.
   *
   * @internal
   */
  readonly [BESIDE]: { readonly beside: Beside; readonly reports: OwnReports }
  readonly #redis: RedisRemote
  readonly #onDemand: OnDemand | null

  constructor(
    redis: RedisRemote,
    settings: ReturnType<typeof parseRedisOptions>,
    world: World,
    onDemand: OnDemand | null,
  ) {
    super(redis, settings, world)
    const { statistics } = settings
    const { beside } = redis
    if (statistics !== null) this.statistics = statistics
    this.control = redisControl(beside)
    const member = (): string => world.random().toString(36).slice(2)
    // A connection that lives as long as a request has no second to leave anything of.
    this[BESIDE] = { beside, reports: leaveReports(beside, member, onDemand === null ? statistics : null) }
    this.#redis = redis
    this.#onDemand = onDemand
  }

  override decide(check: PendingCheck): void {
    this.#onDemand?.doWhatIsDue()
    super.decide(check)
  }

  /**
   * Resolves to true when the store is connected and has inspected the server, and to false if that took longer
   * than `timeoutMs` (default 10,000) or the store was closed. Never rejects.
   */
  ready(options?: ReadyOptions): Promise<boolean> {
    return this.#redis.ready(options)
  }

  pending(): Promise<unknown> | null {
    return this.#onDemand?.pending() ?? null
  }

  override close(): Promise<void> {
    this[BESIDE].reports.stop()
    return super.close()
  }
}

/**
 * At the edge there is a request or there is nothing: no timer runs between two of them, nothing may be sent before
 * the first, and work in flight after a response is cut off unless the runtime was told. So what other stores do in the
 * background is done when the next request comes.
 */

/** Work that waits for the next request. */
interface Due {
  readonly atMs: number
  readonly work: () => void
}

class OnDemand {
  /** The same world, in which background work waits for a request. */
  readonly world: World
  readonly #unanswered = new Set<Promise<unknown>>()
  #waiting: Due[] = []

  constructor(world: World) {
    const inBackground = (ms: number, work: () => void): (() => void) => this.#wait(ms, work)
    const start = (work: () => void): void => void this.#wait(0, work)
    this.world = {
      ...world,
      timers: { ...world.timers, inBackground, start },
      onSent: reply => this.#sent(reply),
    }
  }

  /** Does what has become due; before each request. */
  doWhatIsDue(): void {
    if (this.#waiting.length === 0) return
    const nowMs = this.world.clock.nowUs() / 1_000
    const due = this.#waiting.filter(({ atMs }) => atMs <= nowMs)
    this.#waiting = this.#waiting.filter(({ atMs }) => atMs > nowMs)
    for (const { work } of due) work()
  }

  /** Returns unanswered calls; null if there are none. */
  pending(): Promise<unknown> | null {
    return this.#unanswered.size === 0 ? null : Promise.allSettled(this.#unanswered)
  }

  #wait(ms: number, work: () => void): () => void {
    const due = { atMs: this.world.clock.nowUs() / 1_000 + ms, work }
    this.#waiting.push(due)
    return () => {
      this.#waiting = this.#waiting.filter(other => other !== due)
    }
  }

  #sent(reply: Promise<unknown>): void {
    this.#unanswered.add(reply)
    const forget = () => void this.#unanswered.delete(reply)
    reply.then(forget, forget)
  }
}
