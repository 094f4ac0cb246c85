import { type Clock, systemClock } from '../../clock.js'
import type { Admission } from '../../engine/admission.js'
import { algorithmOf, type State } from '../../engine/algorithms.js'
import { decide, decideSingle, peek } from '../../engine/decide.js'
import type { Denial } from '../../engine/denial.js'
import type { Limit } from '../../engine/limit.js'
import type { Answer, Check, Refund } from '../../engine/question.js'
import { SingleQuestion } from '../../engine/single.js'
import { HeadgateError, show } from '../../errors.js'
import { isDigested, type OneUnit, withShortWays } from '../short-ways.js'
import type { Store } from '../store.js'
import { memoryControl } from './memory-control.js'
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
/** Nothing is open outside of a question. */
const NO_TURN = -1

/**
 * The embedded store: limits of this process, kept in this process, decided by the engine.
 * Bounded without timers or sweeps. When it is full it forgets keys with nothing used first, then those that have
 * most left; when all it sees are at their limit, newcomers share a few states instead of freeing anybody.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store & { readonly size: number } {
  const maxKeys = parseMaxKeys(options.maxKeys)
  const clock = options.clock ?? systemClock
  const tables = new Map<string, Table>()
  /** What newcomers share: a few states for each limit, beside the keys and never forgotten. */
  const overflow = new Map<string, Table>()
  const added: { readonly table: Table; readonly key: string }[] = []
  let size = 0
  let turn = 0
  /** The time of the question being decided. */
  let nowUs = 0

  function largest(): Table | undefined {
    let found: Table | undefined
    for (const table of tables.values()) if (table.size > (found?.size ?? 0)) found = table
    return found
  }

  function makeRoom(table: Table, nowUs: number): boolean {
    if (size < maxKeys) return true
    const crowded = largest()
    const forgotten = crowded?.forgetOne(nowUs, turn) || (crowded !== table && table.forgetOne(nowUs, turn))
    if (forgotten) size--
    return forgotten ?? false
  }

  function open(check: Check): State {
    const table = tableOf(tables, check)
    const key = keyOf(check)
    const known = table.open(key, check.limit, turn)
    if (known !== undefined) return known
    if (makeRoom(table, nowUs)) {
      size++
      added.push({ table, key })
      return table.add(key, check.limit, turn)
    }
    return openShared(check, key)
  }

  function openShared(check: Check, key: string): State {
    const shared = tableOf(overflow, check)
    return shared.open(overflowKey(key), check.limit, turn) ?? shared.add(overflowKey(key), check.limit, turn)
  }

  /** A denied request leaves no trace: what was added to look at and then not charged goes again. */
  function dropUncharged(nowUs: number): void {
    for (const { table, key } of added) if (table.isIdle(key, nowUs) && table.delete(key)) size--
    added.length = 0
  }

  /** The state a check would be decided on, without making room for it. */
  function glance(check: Check, nowUs: number): State {
    const table = tables.get(check.name)
    const key = keyOf(check)
    const known = table?.find(key)
    if (known !== undefined) return known
    const hasRoom = size < maxKeys || largest()?.canForget(nowUs, NO_TURN) || table?.canForget(nowUs, NO_TURN)
    const shared = hasRoom ? undefined : overflow.get(check.name)?.find(overflowKey(key))
    return shared ?? algorithmOf(check.limit).empty()
  }

  /** The commonest question: nothing is opened beside its state, and nothing to be undone but a key that was added. */
  function decideAlone(question: SingleQuestion): Answer {
    const table = tableOf(tables, question)
    const key = keyOf(question)
    const known = table.openAlone(key, question.limit)
    if (known !== undefined) return decideSingle(question, known, nowUs)
    turn++
    if (!makeRoom(table, nowUs)) return decideSingle(question, openShared(question, key), nowUs)
    const answer = decideSingle(question, table.add(key, question.limit, turn), nowUs)
    if (answer.chargedAtUs === null) table.delete(key)
    else size++
    return answer
  }

  const store: Store & { readonly size: number } = {
    source: 'memory',
    clock,
    control: memoryControl(clock),
    get size() {
      return size
    },
    decide(question) {
      nowUs = clock.nowUs()
      if (question instanceof SingleQuestion) return decideAlone(question)
      turn++
      const answer = decide(question, open, nowUs)
      if (added.length > 0) dropUncharged(nowUs)
      return answer
    },
    peek(question) {
      const nowUs = clock.nowUs()
      return peek(question, check => glance(check, nowUs), nowUs)
    },
    refund(refunds) {
      const nowUs = clock.nowUs()
      return refunds.map(refund => refundOne(refund, glance(refund.check, nowUs), nowUs))
    },
    reset(checks) {
      for (const check of checks) if (tables.get(check.name)?.delete(keyOf(check))) size--
    },
    close() {
      for (const table of tables.values()) table.clear()
      overflow.clear()
      size = 0
    },
  }

  /** One unit of a limit, for keys that are the subjects themselves. */
  class OneUnitOf implements OneUnit {
    constructor(
      private readonly table: Table,
      private readonly limit: Limit,
    ) {}

    take(subject: string, admission: Admission): Denial | boolean {
      return this.table.takeOne(subject, this.limit, clock, admission)
    }

    takeFirst(subject: string, admission: Admission): boolean {
      if (isDigested(subject) || this.table.has(subject)) return false
      const nowUs = clock.nowUs()
      turn++
      if (!makeRoom(this.table, nowUs)) return false
      const isTaken = this.table.takeFirst(subject, this.limit, nowUs, admission)
      if (isTaken) size++
      return isTaken
    }
  }

  return withShortWays(store, {
    wayOf: (name, limit) => new OneUnitOf(tableOf(tables, { name, limit }), limit),
  })
}

function tableOf(tables: Map<string, Table>, check: Pick<Check, 'name' | 'limit'>): Table {
  let table = tables.get(check.name)
  if (table === undefined) {
    table = new Table(check.limit)
    tables.set(check.name, table)
  }
  return table
}

/**
 * Within a table the subject is the key, as it came: the common scope costs no new string. Another scope goes before
 * it with its length, behind a colon, with which no subject begins: no id can be written to look like a scope. A digest
 * goes behind a colon too: whoever knows one must not pass for the subject it stands for (`OneUnitOf`).
 */
function keyOf({ subject, scope }: Pick<Check, 'subject' | 'scope'>): string {
  if (scope !== 'global') return `:${scope.length}:${scope}${subject}`
  return isDigested(subject) ? `:${subject}` : subject
}

function overflowKey(key: string): string {
  let hash = 0
  for (let index = 0; index < key.length; index++) hash = (hash * 31 + key.charCodeAt(index)) | 0
  return `${(hash >>> 0) % OVERFLOW_KEYS}`
}

function refundOne(refund: Refund, state: State, nowUs: number): number {
  const { limit } = refund.check
  const { units, chargedAtUs, heldSinceUs } = refund
  return algorithmOf(limit).refund(limit, state, units, chargedAtUs, nowUs, heldSinceUs)
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
