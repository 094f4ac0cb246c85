/** Stores with a known fault, to show that the simulation finds it. */

import type { Limit } from '../../src/algorithms/algorithm.ts'
import type { LogLimit } from '../../src/algorithms/sliding-window-log.ts'
import { NamedLimit, type Plan } from '../../src/check/plan.ts'
import type { RedisConnection } from '../../src/store/redis/connection.ts'
import { parseRedisOptions } from '../../src/store/redis/redis-options.ts'
import { createRedisRemote } from '../../src/store/redis/redis-remote.ts'
import { RedisStore } from '../../src/store/redis/redis-store.ts'
import { scripts } from '../../src/store/redis/scripts.gen.ts'
import type { Remote } from '../../src/store/remote/remote.ts'
import type { World } from '../../src/store/remote/remote-store.ts'
import { changed } from '../support/changed.ts'
import { isConcurrency, isLog, isTokenBucket } from '../support/limit-kinds.ts'
import { ONE_CALL_EACH, type Shape } from './policies.ts'
import type { Mode } from './simulate.ts'
import { DEADLINE_MS } from './simulated-process.ts'
import { type Wiring, wireStore } from './wiring.ts'

interface Mutant {
  readonly fault: string
  readonly wiring: Wiring
  readonly mode: Mode
  readonly shape: Shape
  /** The denial that the simulation must report. */
  readonly complaint: RegExp
  /** The first seed to try. Default 1. */
  readonly fromSeed?: number
}

/** A client that resends a script after a lost connection, as some do by default. */
function resending(connection: RedisConnection): RedisConnection {
  return {
    ...connection,
    async evalsha(sha, keys, args) {
      try {
        return await connection.evalsha(sha, keys, args)
      } catch (error) {
        if (error instanceof Error && error.message.startsWith('NOSCRIPT')) throw error
        await connection.ready?.()
        return connection.evalsha(sha, keys, args)
      }
    },
  }
}

/** The store as users get it, with something else in the place of Redis. */
function withRemote(change: (remote: Remote, world: World) => Partial<Remote>): Wiring {
  return (world, connection, options) => {
    const settings = parseRedisOptions(options)
    const remote = createRedisRemote(connection, settings, world)
    return new RedisStore({ ...remote, ...change(remote, world) }, settings, world, null)
  }
}

/** The store as users get it, asked for other limits than the limiter means. */
function withLimits(change: (limit: Limit) => Limit): Wiring {
  const plans = new Map<Plan, Plan>()
  const changedPlan = (plan: Plan): Plan => {
    if (!plans.has(plan))
      plans.set(
        plan,
        plan.map(({ name, limit }) => new NamedLimit(name, change(limit))),
      )
    return plans.get(plan) as Plan
  }
  return (world, connection, options) => {
    const store = wireStore(world, connection, options)
    return changed(store, {
      decide(check) {
        check.asked = changedPlan(check.plan)
        store.decide(check)
      },
    })
  }
}

/** A store that refunds charges whose outcome it does not know. */
const refundsUnknownOutcomes = withRemote((remote, { timers }) => ({
  ask(checks, isPeek, testTime) {
    const charged = checks.flatMap(check =>
      check.plan.limits.slice(0, check.plan.ends[0]).map((_, index) => check.checkOf(index)),
    )
    const refunds = charged.map(check => ({ check, units: check.cost, chargedAtUs: null }))
    const cancel = timers.after(DEADLINE_MS, () => void remote.refund(refunds).catch(() => {}))
    return remote.ask(checks, isPeek, testTime).finally(cancel)
  },
}))

/** A store that claims to have granted as much as was asked for, though it granted less. */
const grantsInWords = withRemote(remote => ({
  read(reply, checks) {
    const errors = remote.read(reply, checks)
    for (const check of checks) {
      if (check.charged <= 0) continue
      const from = check.plan.start(check.charged)
      const { length } = check.plan.limits.slice(from, check.plan.ends[check.charged])
      for (let index = 0; index < length; index++) {
        const at = from + index
        check.set(index, check.wait(at), check.left(at), check.resetAfter(at), check.chargedAt(at))
      }
      check.charged = 0
    }
    return errors
  },
}))

/** Leases that live much longer than they may. */
const livingOn = ({ lease, ...limit }: Limit): Limit =>
  lease === undefined ? limit : { ...limit, lease: { ...lease, ttlUs: 10 * lease.ttlUs } }

/** A bucket that leases as if the grant were spent at once. */
const asIfSpentAtOnce = (limit: Limit): Limit => {
  if (limit.lease === undefined || !isTokenBucket(limit)) return limit
  return { ...limit, limit: limit.limit + Math.ceil((limit.refillPerSecond * limit.lease.ttlUs) / 1e6) }
}

/**
 * Gives back units that a bucket has refilled in the meantime: the arguments of refund.lua do not say that they
 * were held.
 */
function asIfNothingRefilled(connection: RedisConnection): RedisConnection {
  const forget = (args: string[]): string[] => {
    // Seven arguments a refund, after the clock.
    return args.map((arg, index) => (index > 0 && index % 7 === 0 ? '-1' : arg))
  }
  const { refund } = scripts
  return {
    ...connection,
    evalsha: (sha, keys, args) => connection.evalsha(sha, keys, sha === refund.sha ? forget(args) : args),
    eval: (text, keys, args) => connection.eval(text, keys, text === refund.text ? forget(args) : args),
  }
}

/** A log that never forgets what was leased. */
const forGood = (limit: Limit): Limit | LogLimit =>
  limit.lease === undefined || !isLog(limit) ? limit : { ...limit, windowUs: 10 * limit.windowUs }

const BATCHED: Shape = { batch: true, leased: [] }
const LASTING: Shape = { batch: true, leased: [], lasting: true }
const LEASED_BUCKET: Shape = { batch: true, leased: ['leasedBucket'] }
const LEASED: Shape = { batch: true, leased: ['leasedLog'] }

export const mutants: readonly Mutant[] = [
  {
    fault: 'a lost call is sent again',
    wiring: (world, connection, options) => wireStore(world, resending(connection), options),
    mode: 'safety',
    shape: ONE_CALL_EACH,
    complaint: /was charged 2 times/,
  },
  {
    fault: 'a lost call of several requests is sent again',
    wiring: (world, connection, options) => wireStore(world, resending(connection), options),
    mode: 'safety',
    shape: BATCHED,
    complaint: /units were charged for nobody, or twice/,
  },
  {
    fault: 'an unknown outcome is given back',
    wiring: refundsUnknownOutcomes,
    mode: 'safety',
    shape: ONE_CALL_EACH,
    complaint: /given back although its outcome is not known/,
  },
  {
    fault: 'the breaker never half-opens',
    wiring(world, connection, options) {
      const never = () => () => {}
      const inBackground: typeof world.timers.inBackground = (ms, work) =>
        ms < 1_000 ? never() : world.timers.inBackground(ms, work)
      return wireStore({ ...world, timers: { ...world.timers, inBackground } }, connection, options)
    },
    mode: 'liveness',
    shape: ONE_CALL_EACH,
    complaint: /is decided by \w+ after recovery/,
  },
  {
    fault: 'there is no deadline',
    wiring: (world, connection, options) =>
      wireStore({ ...world, timers: { ...world.timers, after: () => () => {} } }, connection, options),
    mode: 'safety',
    shape: ONE_CALL_EACH,
    complaint: /settled .* ms after it began|never settled/,
  },
  {
    fault: 'every process takes itself for the only one',
    wiring: (world, connection, options) => wireStore(world, connection, { ...options, processes: 1 }),
    mode: 'liveness',
    shape: ONE_CALL_EACH,
    complaint: /counts 1 processes of/,
  },
  {
    fault: 'a process that has not been heard of for a moment is not counted',
    wiring: withRemote(remote => ({
      async heartbeat() {
        const beat = await remote.heartbeat()
        return { ...beat, recent: beat.live }
      },
    })),
    mode: 'outage',
    shape: BATCHED,
    complaint: /divides by \d; it has heard of/,
  },
  {
    fault: 'a lease is spent after its time',
    wiring: withLimits(livingOn),
    mode: 'safety',
    shape: LEASED,
    complaint: /us after it was charged; its time is/,
  },
  {
    fault: 'more is spent than was granted',
    wiring: grantsInWords,
    mode: 'safety',
    shape: LEASED_BUCKET,
    complaint: /units were spent of/,
  },
  {
    fault: 'what is left of a lease is given back twice',
    wiring: withRemote(remote => ({
      async refund(refunds) {
        await remote.refund(refunds)
        return remote.refund(refunds)
      },
    })),
    mode: 'safety',
    shape: LEASED,
    complaint: /units were given back; at most/,
  },
  {
    fault: 'what is left of a lease is kept when the process ends',
    wiring: withRemote(() => ({ refund: async refunds => refunds.map(() => 0) })),
    mode: 'liveness',
    shape: LEASED,
    complaint: /is closed and never gave back/,
  },
  {
    fault: 'a bucket is leased as if it did not refill',
    wiring: (world, connection, options) =>
      withLimits(asIfSpentAtOnce)(world, asIfNothingRefilled(connection), options),
    mode: 'safety',
    shape: LEASED_BUCKET,
    complaint: /as spent: .* promised|by itself; its share is/,
    // One history in fifty shows it.
    fromSeed: 80,
  },
  {
    fault: 'what a process took in advance is gone for good',
    wiring: withLimits(forGood),
    mode: 'liveness',
    shape: LEASED,
    complaint: /of which nothing was used any more/,
  },
  {
    fault: 'permits are not given back',
    wiring: withRemote(remote => ({
      refund(refunds) {
        const others = refunds.filter(({ check }) => !isConcurrency(check.limit))
        return others.length === 0 ? Promise.resolve(refunds.map(() => 0)) : remote.refund(others)
      },
    })),
    mode: 'liveness',
    shape: LASTING,
    complaint: /permits of .* was never given back/,
  },
  {
    fault: 'permits are not renewed',
    wiring: withRemote(() => ({ renew: async renewals => renewals.map(() => true) })),
    mode: 'liveness',
    shape: LASTING,
    complaint: /permits of .* expired while it was held/,
  },
  {
    fault: 'permits are renewed when their request is over',
    wiring: withRemote(remote => {
      const renewed: Parameters<typeof remote.renew>[0][number][] = []
      return {
        renew(renewals) {
          const stale = renewed.slice(0, 1)
          renewed.push(...renewals)
          return remote.renew([...renewals, ...stale])
        },
      }
    }),
    mode: 'liveness',
    shape: LASTING,
    complaint: /although its request was over/,
  },
  {
    fault: 'one permit more is given away than there is',
    wiring: withLimits(limit => (isConcurrency(limit) ? { ...limit, limit: limit.limit + 1 } : limit)),
    mode: 'safety',
    shape: LASTING,
    complaint: /4 permits were held at once/,
  },
  {
    fault: 'an estimate is settled twice',
    wiring: withRemote(remote => ({
      async refund(refunds) {
        await remote.refund(refunds)
        return remote.refund(refunds)
      },
    })),
    mode: 'safety',
    shape: LASTING,
    complaint: /settled -?\d+ units of .* for nobody, or twice/,
  },
  {
    fault: 'an estimate is never settled',
    wiring: withRemote(() => ({ refund: async refunds => refunds.map(() => 0) })),
    mode: 'liveness',
    shape: LASTING,
    complaint: /estimated of .* was never settled/,
  },
]
