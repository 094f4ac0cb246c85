import { encodeTenant } from '../../subject/key.js'
import type { Timers } from '../../time/clock.js'
import { withinTime } from '../../time/within-time.js'
import type { Change, ChangeTrail } from '../change-trail.js'
import type { ControlStore } from '../control-store.js'
import type { World } from '../remote/remote-store.js'
import type { StatisticsStore } from '../statistics-store.js'
import type { RedisConnection } from './connection.js'
import { redisControl } from './redis-control.js'
import type { RedisSettings } from './redis-options.js'
import type { RedisRemote } from './redis-remote.js'
import { redisStatistics } from './redis-statistics.js'
import { textsOf } from './reply.js'
import { type Script, scripts } from './scripts.gen.js'
import { lateReply } from './store-error.js'

/** The stores of operators in Redis, beside the limits. */
export interface OperatorStores {
  readonly control: ControlStore
  readonly changes: ChangeTrail
  readonly fleetStatistics: StatisticsStore
}

/** Makes them over the connection of the requests, which never wait for them. `stop` ends what they do by themselves. */
export function createOperatorStores(
  { callBeside: call, clockUs }: RedisRemote,
  connection: RedisConnection,
  { prefix, tenant, service, statistics }: RedisSettings,
  { timers, random }: World,
): OperatorStores & { stop(): void } {
  const shared = { prefix, tenant, service, call, clockUs, timers }
  const fleetStatistics = redisStatistics({
    ...shared,
    member: () => random().toString(36).slice(2),
    info: connection.info === undefined ? undefined : async () => (await connection.info?.()) ?? '',
    // A connection that lives as long as a request has no second to leave anything of.
    statistics: connection.onDemand ? null : statistics,
  })
  return {
    control: redisControl(shared),
    changes: redisChanges(shared),
    fleetStatistics,
    stop: () => fleetStatistics.stop(),
  }
}

/** The trail of operators' changes, in Redis: one bounded list beside the overrides. */

interface RedisChangesOptions {
  readonly prefix: string
  readonly tenant: string
  /** Runs a script, waiting this long for a connection. */
  readonly call: (script: Script, keys: string[], args: string[], connectWithinMs: number) => Promise<unknown>
  /** The server's time for tests, or ''. */
  readonly clockUs: () => string
  readonly timers: Timers
}

const MAX_CHANGES = 500
const MAX_WORDS = 1_000
const KEEP_US = 90 * 86_400_000_000
const GIVE_UP_AFTER_MS = 1_000
const ENTRY = /^(\d{1,15}) (.*)$/s

function redisChanges({ prefix, tenant, call, clockUs, timers }: RedisChangesOptions): ChangeTrail {
  const key = `${prefix}:changes${tenant === '' ? '' : `:${encodeTenant(tenant)}`}`

  async function run(text: string): Promise<readonly Change[]> {
    const args = [clockUs(), text, String(MAX_CHANGES), String(KEEP_US)]
    const reply = call(scripts.changes, [key], args, GIVE_UP_AFTER_MS)
    const found = await withinTime(reply, GIVE_UP_AFTER_MS, timers.inBackground, lateReply)
    return textsOf(found, MAX_CHANGES)
      .flatMap(changeOf)
      .toSorted((one, other) => other.atMs - one.atMs)
  }

  return {
    add: ({ by, what, atMs }) => run(JSON.stringify({ by, what: what.slice(0, MAX_WORDS), atMs })),
    read: () => run(''),
  }
}

/** Skips entries that somebody else has written there. */
function changeOf(entry: string): Change[] {
  try {
    const [, notedAtMs, text = ''] = ENTRY.exec(entry) ?? []
    // A change that was written back says itself when it was made.
    const { by, what, atMs = Number(notedAtMs) } = JSON.parse(text) as Partial<Record<keyof Change, unknown>>
    if (typeof what !== 'string' || (by !== null && typeof by !== 'string')) return []
    return typeof atMs === 'number' && atMs >= 0 ? [{ atMs, by, what }] : []
  } catch {
    return []
  }
}
