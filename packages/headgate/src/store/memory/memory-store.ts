import { peek } from '../../engine/decide.js'
import type { Answer, Question, Refund, Renewal } from '../../engine/question.js'
import { isSingle } from '../../engine/single-question.js'
import { unexpected } from '../../errors/headgate-error.js'
import { type Clock, systemClock } from '../../time/clock.js'
import { type Stage, toStore } from '../stage.js'
import type { Store } from '../store.js'
import { memoryControl } from './memory-control.js'
import { OneUnitInMemory } from './one-unit.js'
import { OpenStates } from './open-states.js'
import { SingleChecks } from './single-checks.js'
import { States } from './states.js'

export interface MemoryStoreOptions {
  /** The most states kept; one for each subject, scope and limit. Default 100,000. */
  readonly maxKeys?: number
  readonly clock?: Clock
}

/** A store whose states are in this process. */
export type MemoryStore = Store & Required<Pick<Store, 'renew'>> & { readonly size: number }

const DEFAULT_MAX_KEYS = 100_000
/** A Map holds 2^24 entries at most. */
const MAX_MAX_KEYS = 2 ** 24 - 1_000

/**
 * Creates the embedded store: limits of this process, kept in this process, decided by the engine. Bounded without
 * timers or sweeps. When full it first forgets keys with nothing used, then those with the most left. When all it
 * sees are at their limit, it keeps only that fact about one (`forgotten.ts`), so that newcomers are served and
 * nobody at a limit gets free.
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  const states = new States(parseMaxKeys(options.maxKeys))
  const clock = options.clock ?? systemClock
  const openStates = new OpenStates(states)
  const singleChecks = new SingleChecks(states, openStates)

  function decideNow(question: Question): Answer {
    const nowUs = clock.nowUs()
    return isSingle(question) ? singleChecks.decide(question, nowUs) : openStates.decide(question, nowUs)
  }

  function peekNow(question: Question): Answer {
    const nowUs = clock.nowUs()
    return peek(question, check => states.glance(check, nowUs), nowUs)
  }

  /** Negative units were already used: they are charged, also to a forgotten key, and nothing is given back. */
  function refundOne({ check, units, chargedAtUs, heldSinceUs }: Refund, nowUs: number): number {
    const { limit } = check
    const { algorithm } = limit
    if (units < 0) {
      return openStates.write(check, nowUs, state => algorithm.refund(limit, state, units, null, nowUs))
    }
    const state = states.find(check)
    return state === undefined ? 0 : algorithm.refund(limit, state, units, chargedAtUs, nowUs, heldSinceUs)
  }

  /** A forgotten place is taken again, for which there must be a row. */
  function renewOne({ check, takenAtUs }: Renewal, nowUs: number): boolean {
    const { limit, cost } = check
    const { algorithm } = limit
    if (algorithm.renew === undefined) return false
    return openStates.write(
      check,
      nowUs,
      state => algorithm.renew?.(limit, state, cost, takenAtUs, nowUs) ?? false,
    )
  }

  const stage = {
    source: 'memory',
    ask: (action, question) => (action === 'decide' ? decideNow(question) : peekNow(question)),
    refund(refunds) {
      const nowUs = clock.nowUs()
      return refunds.map(refund => refundOne(refund, nowUs))
    },
    renew(renewals) {
      const nowUs = clock.nowUs()
      return renewals.map(renewal => renewOne(renewal, nowUs))
    },
    reset(checks) {
      const nowUs = clock.nowUs()
      for (const check of checks) states.reset(check, nowUs)
    },
    close() {
      states.clear()
      openStates.clear()
    },
    oneUnit: (name, limit, isOwnName) => new OneUnitInMemory(clock, states, name, limit, isOwnName),
  } satisfies Stage
  return toStore(stage, {
    clock,
    control: memoryControl(clock),
    get size() {
      return states.size
    },
    decide: decideNow,
    peek: peekNow,
    renew: stage.renew,
  })
}

function parseMaxKeys(value: unknown): number {
  if (value === undefined) return DEFAULT_MAX_KEYS
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_MAX_KEYS)
    return value
  throw unexpected(
    'ERR_HEADGATE_INVALID_OPTION',
    'maxKeys',
    `a whole number from 1 to ${MAX_MAX_KEYS}`,
    value,
  )
}
