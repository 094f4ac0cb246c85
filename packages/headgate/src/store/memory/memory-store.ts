import { type Clock, systemClock } from '../../clock.js'
import { algorithmOf, type State } from '../../engine/algorithms.js'
import { decide, peek } from '../../engine/decide.js'
import type { Check, Refund } from '../../engine/question.js'
import { HeadgateError, show } from '../../errors.js'
import type { Store } from '../store.js'
import { Table } from './table.js'

export interface MemoryStoreOptions {
  /** States kept at most; one for each subject, scope and limit. Default 100,000. */
  readonly maxKeys?: number
  readonly clock?: Clock
}

const DEFAULT_MAX_KEYS = 100_000
/** A Map holds 2^24 entries at most. */
const MAX_MAX_KEYS = 2 ** 24 - 1_000
const OVERFLOW_KEYS = 64

/**
 * The embedded store: limits of this process, kept in this process, decided by the engine.
 * Bounded without timers or sweeps. When it is full it forgets keys with nothing used first, then those that have
 * used least; when all it sees are at their limit, newcomers share a few keys instead of freeing anybody.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store & { readonly size: number } {
  const maxKeys = parseMaxKeys(options.maxKeys)
  const clock = options.clock ?? systemClock
  const tables = new Map<string, Table>()
  let size = 0

  function tableOf(check: Check): Table {
    let table = tables.get(check.name)
    if (table === undefined) {
      table = new Table(check.limit)
      tables.set(check.name, table)
    }
    return table
  }

  function forgetOne(nowUs: number): boolean {
    let largest: Table | undefined
    for (const table of tables.values()) if (table.size > (largest?.size ?? 0)) largest = table
    return largest?.forgetOne(nowUs) ?? false
  }

  function add(table: Table, key: string, check: Check, nowUs: number): State {
    if (size < maxKeys) {
      size++
      return table.add(key, check.limit)
    }
    if (forgetOne(nowUs)) return table.add(key, check.limit)
    const shared = overflowKey(key)
    return table.find(shared) ?? table.add(shared, check.limit)
  }

  function open(check: Check, nowUs: number): State {
    const table = tableOf(check)
    const key = keyOf(check)
    return table.find(key) ?? add(table, key, check, nowUs)
  }

  function glance(check: Check): State {
    return tables.get(check.name)?.find(keyOf(check)) ?? algorithmOf(check.limit).empty()
  }

  return {
    source: 'memory',
    get size() {
      return size
    },
    decide(question) {
      const nowUs = clock.nowUs()
      return decide(question, check => open(check, nowUs), nowUs)
    },
    peek: question => peek(question, glance, clock.nowUs()),
    refund: refunds => refunds.map(refund => refundOne(refund, glance(refund.check), clock.nowUs())),
    reset(checks) {
      for (const check of checks) if (tables.get(check.name)?.delete(keyOf(check))) size--
    },
    close() {
      tables.clear()
      size = 0
    },
  }
}

/** Within a table the subject is the key, as it came: the common scope costs no new string. */
function keyOf(check: Pick<Check, 'subject' | 'scope'>): string {
  return check.scope === 'global' ? check.subject : `${check.subject}\n${check.scope}`
}

/** A subject never begins with a colon, so no subject can name one of these. */
function overflowKey(key: string): string {
  let hash = 0
  for (let index = 0; index < key.length; index++) hash = (hash * 31 + key.charCodeAt(index)) | 0
  return `:${(hash >>> 0) % OVERFLOW_KEYS}`
}

function refundOne(refund: Refund, state: State, nowUs: number): number {
  const { limit } = refund.check
  return algorithmOf(limit).refund(limit, state, refund.units, refund.chargedAtUs, nowUs)
}

function parseMaxKeys(value: unknown): number {
  if (value === undefined) return DEFAULT_MAX_KEYS
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_MAX_KEYS)
    return value
  throw new HeadgateError(
    'ERR_HEADGATE_INVALID_OPTION',
    `maxKeys: expected a whole number from 1 to ${MAX_MAX_KEYS}; got ${show(value)}`,
  )
}
