/** Stores with a known fault, to show that the simulation finds it. */

import type { Limit } from '../../src/algorithms/algorithm.ts'
import type { LogLimit } from '../../src/algorithms/sliding-window-log.ts'
import type { Check } from '../../src/engine/question.ts'
import { mapChecks } from '../../src/engine/single-question.ts'
import { createPipeline, type World } from '../../src/store/guard/pipeline.ts'
import type { Remote } from '../../src/store/guard/remote.ts'
import type { RedisConnection } from '../../src/store/redis/connection.ts'
import { createOperatorStores } from '../../src/store/redis/operator-stores.ts'
import { parseRedisOptions } from '../../src/store/redis/redis-options.ts'
import { createRedisRemote } from '../../src/store/redis/redis-remote.ts'
import { scripts } from '../../src/store/redis/scripts.gen.ts'
import { toStore } from '../../src/store/stage.ts'
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
  /** The violation that the simulation must report. */
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

/** The store as users get it, with something else at the end of its pipeline. */
function withRemote(change: (remote: Remote, world: World) => Partial<Remote>): Wiring {
  return (world, connection, options) => {
    const settings = parseRedisOptions(options)
    const remote = createRedisRemote(connection, settings, world)
    const pipeline = createPipeline({ ...remote, ...change(remote, world) }, settings, world)
    return toStore(pipeline, {
      ...createOperatorStores(remote, connection, settings, world),
      ready: remote.ready,
      health: pipeline.health,
    })
  }
}

/** The store as users get it, asked for other limits than the limiter means. */
function withLimits(change: (limit: Limit) => Limit): Wiring {
  const changed = new Map<Limit, Limit>()
  const changedLimit = (limit: Limit): Limit => {
    if (!changed.has(limit)) changed.set(limit, change(limit))
    return changed.get(limit) as Limit
  }
  const toCheck = (check: Check): Check => ({ ...check, limit: changedLimit(check.limit) })
  return (world, connection, options) => {
    const store = wireStore(world, connection, options)
    return { ...store, decide: question => store.decide(mapChecks(question, toCheck)) }
  }
}

/** A store that refunds charges whose outcome it does not know. */
const refundsUnknownOutcomes = withRemote((remote, { timers }) => ({
  ask(action, questions, askedAt) {
    const checks = questions.flatMap(({ alternatives }) => alternatives[0] ?? [])
    const refunds = checks.map(check => ({ check, units: check.cost, chargedAtUs: null }))
    const callOff = timers.after(DEADLINE_MS, () => void remote.refund(refunds).catch(() => {}))
    return remote.ask(action, questions, askedAt).finally(callOff)
  },
}))

/** A store that claims to have granted as much as was asked for, though it granted less. */
const grantsInWords = withRemote(remote => ({
  async ask(action, questions, askedAt) {
    const outcomes = await remote.ask(action, questions, askedAt)
    return outcomes.map(outcome => {
      if (outcome instanceof Error || outcome.charged <= 0) return outcome
      return { ...outcome, charged: 0, verdicts: [outcome.verdicts[outcome.charged] ?? []] }
    })
  },
}))

/** Leases that live much longer than they may. */
const livingOn = ({ lease, ...limit }: Limit): Limit =>
  lease === undefined ? limit : { ...limit, lease: { ...lease, ttlUs: 10 * lease.ttlUs } }

/** A bucket that leases as if the grant were spent at once. */
const asIfSpentAtOnce = (limit: Limit): Limit => {
  if (limit.lease === undefined || !isTokenBucket(limit)) return limit
  return { ...limit, limit: limit.limit + (limit.refillPerSecond * limit.lease.ttlUs) / 1e6 }
}

/**
 * Gives back units that a bucket has refilled in the meantime: the arguments of refund.lua do not say that they
 * were held.
 */
function asIfNothingRefilled(connection: RedisConnection): RedisConnection {
  const forget = (args: string[]): string[] => {
    const body = 2 + 4 * Number(args[1])
    return args.map((arg, index) => (index >= body && (index - body) % 4 === 3 ? '-1' : arg))
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
    complaint: /as spent: .* promised/,
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
    fault: 'places are not given back',
    wiring: withRemote(remote => ({
      refund(refunds) {
        const others = refunds.filter(({ check }) => !isConcurrency(check.limit))
        return others.length === 0 ? Promise.resolve(refunds.map(() => 0)) : remote.refund(others)
      },
    })),
    mode: 'liveness',
    shape: LASTING,
    complaint: /places of .* was never given back/,
  },
  {
    fault: 'places are not renewed',
    wiring: withRemote(() => ({ renew: async renewals => renewals.map(() => true) })),
    mode: 'liveness',
    shape: LASTING,
    complaint: /places of .* expired while it was held/,
  },
  {
    fault: 'places are renewed when their request is over',
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
    fault: 'one place more is given away than there is',
    wiring: withLimits(limit => (isConcurrency(limit) ? { ...limit, limit: limit.limit + 1 } : limit)),
    mode: 'safety',
    shape: LASTING,
    complaint: /4 places were held at once/,
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
