/** A fault of a store that fails on demand, to test how an app copes when its real one fails. */

import { HeadgateError, invalidOption } from '../errors/headgate-error.js'
import type { MaybePromise, Store } from '../store/store.js'
import { systemTimers } from '../time/clock.js'
import { decideCopy } from './guarded-store.js'
import { seededRandom } from './seeded-random.js'

export type Fault =
  /**
   * Fails before the store is asked, so that nothing is charged. `error` replaces the error of a lost connection.
   */
  | { readonly type: 'error'; readonly error?: Error }
  /** The store executes the call, but the caller never gets the reply. */
  | { readonly type: 'lost-reply' }
  /** Reaches the store this much later, and is answered then. */
  | { readonly type: 'delay'; readonly ms: number }
  /** Reaches the store only when the faults stop, as with a frozen server. */
  | { readonly type: 'hang' }

/** A fault, and the share of calls that meet it, from 0 to 1. */
export interface FaultOdds {
  readonly fault: Fault
  readonly probability: number
}

/** Controls the faults of a store, at any time. */
export interface Faults {
  /** Makes the next `count` calls meet this fault, after earlier ones set this way and before any others. */
  next(count: number, fault: Fault): void
  /** Makes every call meet this fault, until changed. */
  always(fault: Fault): void
  /**
   * Makes calls meet these faults at random, the same ones for the same seed. Probabilities add up to at most 1.
   */
  randomly(odds: readonly FaultOdds[]): void
  /** Ends all faults; hanging calls continue. */
  stop(): void
  /** Returns how many calls met each kind of fault. */
  injected(): Readonly<Record<Fault['type'], number>>
}

export interface FaultyStore extends Store {
  readonly faults: Faults
}

export interface FaultyStoreOptions {
  /** The seed of `faults.randomly`. Default 1. */
  readonly seed?: number
}

const KINDS: readonly unknown[] = ['error', 'lost-reply', 'delay', 'hang'] satisfies Fault['type'][]

/**
 * Puts faults in front of a store. Calls pass until a fault is set. Wrap it in `guardedStore` to see how the guards
 * of `redisStore` handle them.
 */
export function faultyStore(store: Store, options: FaultyStoreOptions = {}): FaultyStore {
  if (typeof store?.decide !== 'function') {
    throw invalidOption('store', 'a store', store)
  }
  const random = seededRandom(parseSeed(options.seed))
  const injected = { error: 0, 'lost-reply': 0, delay: 0, hang: 0 }
  const hanging = new Set<(error?: Error) => void>()
  let scripted: Fault[] = []
  let odds: readonly FaultOdds[] = []

  function draw(): Fault | undefined {
    const next = scripted.shift()
    if (next !== undefined || odds.length === 0) return next
    let roll = random()
    return odds.find(({ probability }) => {
      roll -= probability
      return roll < 0
    })?.fault
  }

  function call<T>(ask: () => MaybePromise<T>): MaybePromise<T> {
    const fault = draw()
    if (fault === undefined) return ask()
    injected[fault.type]++
    return suffer(fault, ask)
  }

  async function suffer<T>(fault: Fault, ask: () => MaybePromise<T>): Promise<T> {
    switch (fault.type) {
      case 'error':
        throw fault.error ?? lost('before the store was asked')
      case 'lost-reply':
        await ask()
        throw lost('and the reply with it')
      case 'delay':
        await new Promise<void>(resolve => systemTimers.after(fault.ms, resolve))
        return ask()
      case 'hang':
        await new Promise<void>((resolve, reject) =>
          hanging.add(error => (error === undefined ? resolve() : reject(error))),
        )
        return ask()
    }
  }

  function goOn(error?: Error): void {
    for (const settle of hanging) settle(error)
    hanging.clear()
  }

  return {
    source: store.source,
    ...(store.clock && { clock: store.clock }),
    faults: {
      next(count, fault) {
        if (!Number.isInteger(count) || count < 1) {
          throw invalidOption('count', 'a whole number from 1', count)
        }
        const parsed = parseFault(fault, 'fault')
        for (let one = 0; one < count; one++) scripted.push(parsed)
      },
      always(fault) {
        odds = [{ fault: parseFault(fault, 'fault'), probability: 1 }]
      },
      randomly(given) {
        odds = parseOdds(given)
      },
      stop() {
        scripted = []
        odds = []
        goOn()
      },
      injected: () => ({ ...injected }),
    },
    decide(check) {
      const fault = draw()
      if (fault === undefined) return store.decide(check)
      injected[fault.type]++
      return suffer(fault, () => decideCopy(store, check)).then(decided => check.copyFrom(decided))
    },
    refund: refunds => call(() => store.refund(refunds)),
    renew: renewals => call(() => store.renew?.(renewals) ?? renewals.map(() => false)),
    reset: checks => call(() => store.reset(checks)),
    close() {
      goOn(lost('because the store was closed'))
      return store.close()
    },
  }
}

function lost(how: string): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_STORE', `faulty store: the connection was lost ${how}`)
}

function parseFault(fault: unknown, field: string): Fault {
  const { type, ms, error } = (fault ?? {}) as { type?: unknown; ms?: unknown; error?: unknown }
  if (!KINDS.includes(type)) {
    throw invalidOption(`${field}.type`, "'error', 'lost-reply', 'delay' or 'hang'", type)
  }
  if (type === 'delay' && !(typeof ms === 'number' && ms >= 0 && ms <= 3_600_000)) {
    throw invalidOption(`${field}.ms`, 'a number from 0 to 3600000', ms)
  }
  if (type === 'error' && error !== undefined && !(error instanceof Error)) {
    throw invalidOption(`${field}.error`, 'an Error', error)
  }
  return fault as Fault
}

function parseOdds(odds: unknown): readonly FaultOdds[] {
  if (!Array.isArray(odds)) throw invalidOption('odds', 'a list', odds)
  let total = 0
  for (const [index, { fault, probability }] of (odds as FaultOdds[]).entries()) {
    parseFault(fault, `odds[${index}].fault`)
    if (!(typeof probability === 'number' && probability >= 0 && probability <= 1)) {
      throw invalidOption(`odds[${index}].probability`, 'a number from 0 to 1', probability)
    }
    total += probability
  }
  // Ten times a tenth is slightly more than 1.
  if (total > 1 + 1e-9) {
    throw invalidOption('odds', 'probabilities of 1 together at most', total)
  }
  return odds
}

function parseSeed(seed: unknown): number {
  if (seed === undefined) return 1
  if (typeof seed === 'number' && Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32) return seed
  throw invalidOption('seed', 'a whole number below 2^32', seed)
}
