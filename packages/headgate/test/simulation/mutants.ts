/** Stores with a known fault, to show that the simulation finds it. */
import { isHeadgateError } from '../../src/errors.ts'
import { guardStore } from '../../src/store/guard/guarded-store.ts'
import type { RedisConnection } from '../../src/store/redis/connection.ts'
import { directRedisStore } from '../../src/store/redis/direct-store.ts'
import { type Wiring, wireStore } from './wiring.ts'

interface Mutant {
  readonly fault: string
  readonly wiring: Wiring
  readonly mode: 'safety' | 'liveness'
  /** What the simulation has to complain about. */
  readonly complaint: RegExp
}

/** A client that sends a script again after a lost connection, as some do by default. */
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

/** A store that gives back what it does not know to be charged. */
const refundsUnknownOutcomes: Wiring = (world, connection, options) => {
  const direct = directRedisStore(connection, options, world)
  const store = {
    ...direct,
    async decide(question: Parameters<typeof direct.decide>[0]) {
      try {
        return await direct.decide(question)
      } catch (error) {
        if (isHeadgateError(error) && error.code === 'ERR_HEADGATE_STORE_TIMEOUT') {
          const checks = question.alternatives[0] ?? []
          const refunds = checks.map(check => ({ check, units: check.cost, chargedAtUs: null }))
          void Promise.resolve(direct.refund(refunds)).catch(() => {})
        }
        throw error
      }
    },
  }
  const heartbeat = direct.heartbeatOf(String(world.random()))
  return {
    ...guardStore(store, options, {
      nodeOf: direct.nodeOf,
      deadlineMs: direct.deadlineMs,
      heartbeat,
      ...world,
    }),
    ready: direct.ready,
  }
}

export const mutants: readonly Mutant[] = [
  {
    fault: 'a lost call is sent again',
    wiring: (world, connection, options) => wireStore(world, resending(connection), options),
    mode: 'safety',
    complaint: /was charged 2 times/,
  },
  {
    fault: 'an unknown outcome is given back',
    wiring: refundsUnknownOutcomes,
    mode: 'safety',
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
    complaint: /is decided by \w+ after recovery/,
  },
  {
    fault: 'there is no deadline',
    wiring: (world, connection, options) =>
      wireStore({ ...world, timers: { ...world.timers, after: () => () => {} } }, connection, options),
    mode: 'safety',
    complaint: /settled .* ms after it began|never settled/,
  },
  {
    fault: 'every process takes itself for the only one',
    wiring: (world, connection, options) => wireStore(world, connection, { ...options, processes: 1 }),
    mode: 'liveness',
    complaint: /counts 1 processes of/,
  },
]
