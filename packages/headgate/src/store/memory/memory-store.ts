import { Admission } from '../../engine/algorithm.js'
import { algorithmOf, type State } from '../../engine/algorithms.js'
import { type PlacesState, renew } from '../../engine/concurrency.js'
import { decide, decideAlone, peek } from '../../engine/decide.js'
import type { Limit } from '../../engine/limit.js'
import type { Answer, Check, Question, Refund, Renewal } from '../../engine/question.js'
import { isSingle, SingleAnswer, type SingleQuestion } from '../../engine/single-question.js'
import { HeadgateError, show } from '../../errors/headgate-error.js'
import type { KeptDenial } from '../../fast-path/kept-denials.js'
import type { IsOwnName, OneUnit } from '../../fast-path/single-limit-policy.js'
import { isNameOnly } from '../../subject/subject.js'
import { type Clock, systemClock } from '../../time/clock.js'
import { type Stage, toStore } from '../stage.js'
import type { Store } from '../store.js'
import { Forgotten } from './forgotten.js'
import { memoryControl } from './memory-control.js'
import { Table } from './table.js'

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
const OVERFLOW_KEYS = 64

/**
 * Creates the embedded store: limits of this process, kept in this process, decided by the engine. Bounded without
 * timers or sweeps. When full it first forgets keys with nothing used, then those with the most left. When all it
 * sees are at their limit, it keeps only that fact about one (`forgotten.ts`), so that newcomers are served and
 * nobody at a limit gets free.
 */
export function memoryStore(options: MemoryStoreOptions = {}): MemoryStore {
  const maxKeys = parseMaxKeys(options.maxKeys)
  const clock = options.clock ?? systemClock
  const tables = new Map<string, Table>()
  /** States shared by checks for which there is no room beside the others of their question. */
  const overflow = new Map<string, Table>()
  let forgotten: Forgotten | null = null
  const added: { readonly table: Table; readonly key: string }[] = []
  let size = 0
  let turn = 0
  /** The time of the question being decided. */
  let nowUs = 0
  const admission = new Admission()

  function largest(): Table | undefined {
    let found: Table | undefined
    for (const table of tables.values()) if (table.size > (found?.size ?? 0)) found = table
    return found
  }

  function makeRoom(table: Table, nowUs: number): boolean {
    if (size < maxKeys) return true
    const crowded = largest() ?? table
    const isFound =
      crowded.forgetOne(nowUs, turn) ||
      (crowded !== table && table.forgetOne(nowUs, turn)) ||
      forgetAtLimit(crowded, nowUs)
    if (isFound) size--
    return isFound
  }

  function forgetAtLimit(table: Table, nowUs: number): boolean {
    forgotten ??= new Forgotten(maxKeys)
    return table.forgetNext(nowUs, turn, forgotten)
  }

  /** Returns a state for a key that may have been forgotten at its limit; null for any other. */
  function stateOfForgotten(name: string, limit: Limit, key: string, nowUs: number): State | null {
    const untilUs = forgotten === null ? 0 : forgotten.untilUs(name, key)
    return untilUs > nowUs ? algorithmOf(limit).usedUp(limit, untilUs, nowUs) : null
  }

  function open(check: Check): State {
    const { name, limit, cost } = check
    const table = tableOf(tables, name, limit)
    const key = keyOf(check.subject, check.scope)
    const known = table.open(key, limit, turn)
    if (known !== undefined) return known
    const former = stateOfForgotten(name, limit, key, nowUs)
    // It is denied on the stand-in state, so no room has to be made for it.
    if (former !== null && algorithmOf(limit).waitUs(limit, former, cost, nowUs) > 0) return former
    if (!makeRoom(table, nowUs)) return openShared(check, key)
    size++
    added.push({ table, key })
    return table.add(key, limit, turn, former)
  }

  function openShared(check: Check, key: string): State {
    const shared = tableOf(overflow, check.name, check.limit)
    return shared.open(overflowKey(key), check.limit, turn) ?? shared.add(overflowKey(key), check.limit, turn)
  }

  /** A denied request leaves no trace: states added to look at but not charged are removed again. */
  function dropUncharged(nowUs: number): void {
    for (const { table, key } of added) if (table.isUncharged(key, nowUs) && table.delete(key)) size--
    added.length = 0
  }

  /** Returns the state a check would be decided on, without making room for it. */
  function glance(check: Check, nowUs: number): State {
    const table = tables.get(check.name)
    const key = keyOf(check.subject, check.scope)
    const known = table?.find(key)
    if (known !== undefined) return known
    return stateOfForgotten(check.name, check.limit, key, nowUs) ?? algorithmOf(check.limit).empty()
  }

  /** Charges a new key and adds it. Adds nothing if the cost does not fit. */
  function takeFirst(table: Table, key: string, limit: Limit, cost: number, into: Admission): boolean {
    const former = stateOfForgotten(table.name, limit, key, nowUs)
    if (former !== null && algorithmOf(limit).waitUs(limit, former, cost, nowUs) > 0) return false
    turn++
    // There is always room, because no open state has to be kept.
    makeRoom(table, nowUs)
    const isTaken = table.takeFirst({ key, state: former, limit }, cost, nowUs, into)
    if (isTaken) size++
    return isTaken
  }

  /** Answers a question of one check: no other state is open. */
  function decideSingle(question: SingleQuestion): Answer {
    const { subject, scope, name, limit, cost } = question
    const table = tableOf(tables, name, limit)
    const key = keyOf(subject, scope)
    const row = table.rowOf(key)
    if (cost > 0) {
      const isTaken =
        row === undefined
          ? takeFirst(table, key, limit, cost, admission)
          : table.takeAlone(row, limit, cost, nowUs, admission)
      if (isTaken) return new SingleAnswer(admission.remaining, 0, admission.resetAfterUs, nowUs, nowUs)
    }
    if (row !== undefined) return table.decideAlone(row, limit, cost, nowUs)
    // A place is not taken in one pass, so failing to take it does not mean that it does not fit.
    if (limit.algorithm === 'concurrency') return decideInFull(question)
    const state = stateOfForgotten(name, limit, key, nowUs) ?? algorithmOf(limit).empty()
    return decideAlone(algorithmOf(limit), limit, state, cost, nowUs)
  }

  /** A key that was forgotten at its limit is added again, reset. */
  function resetOne({ subject, scope, name, limit }: Check, nowUs: number): void {
    const table = tableOf(tables, name, limit)
    const key = keyOf(subject, scope)
    if (!table.has(key)) {
      if (stateOfForgotten(name, limit, key, nowUs) === null) return
      turn++
      makeRoom(table, nowUs)
      table.add(key, limit, turn)
      size++
    }
    table.reset(key, limit, nowUs)
  }

  /** A forgotten place is taken again, for which there must be a row. */
  function renewOne({ check, takenAtUs }: Renewal): boolean {
    if (check.limit.algorithm !== 'concurrency') return false
    turn++
    const state = open(check) as PlacesState
    const isHeld = renew(check.limit, state, check.cost, takenAtUs, nowUs)
    dropUncharged(nowUs)
    return isHeld
  }

  function renewNow(renewals: readonly Renewal[]): readonly boolean[] {
    nowUs = clock.nowUs()
    return renewals.map(renewOne)
  }

  /** Charges units that were already used, also to a forgotten key. Gives nothing back. */
  function chargeBeyond({ check, units }: Refund): number {
    turn++
    algorithmOf(check.limit).chargeBeyond(check.limit, open(check), -units, nowUs)
    dropUncharged(nowUs)
    return 0
  }

  function decideNow(question: Question): Answer {
    nowUs = clock.nowUs()
    return isSingle(question) ? decideSingle(question) : decideInFull(question)
  }

  function decideInFull(question: Question): Answer {
    turn++
    const answer = decide(question, open, nowUs)
    if (added.length > 0) dropUncharged(nowUs)
    return answer
  }

  function peekNow(question: Question): Answer {
    const nowUs = clock.nowUs()
    return peek(question, check => glance(check, nowUs), nowUs)
  }

  const store: MemoryStore = {
    source: 'memory',
    clock,
    control: memoryControl(clock),
    get size() {
      return size
    },
    decide: decideNow,
    peek: peekNow,
    refund(refunds) {
      nowUs = clock.nowUs()
      return refunds.map(refund => {
        if (refund.units < 0) return chargeBeyond(refund)
        const state = tables.get(refund.check.name)?.find(keyOf(refund.check.subject, refund.check.scope))
        return state === undefined ? 0 : refundOne(refund, state, nowUs)
      })
    },
    renew: renewNow,
    reset(checks) {
      const nowUs = clock.nowUs()
      for (const check of checks) resetOne(check, nowUs)
    },
    close() {
      for (const table of tables.values()) table.clear()
      overflow.clear()
      forgotten = null
      size = 0
    },
  }

  /** One unit of a limit, for keys that are the subjects themselves. */
  class OneUnitInMemory implements OneUnit {
    constructor(
      private readonly table: Table,
      private readonly limit: Limit,
      private readonly isOwnName: IsOwnName,
    ) {}

    take(subject: string, into: Admission): KeptDenial | boolean {
      const { table, limit } = this
      const atUs = clock.nowUs()
      const row = table.rowOfSubject(subject)
      if (row === undefined) return this.isKey(subject) && this.takeFirst(subject, atUs, into)
      return table.takeOne(row, limit, atUs, into)
    }

    private takeFirst(subject: string, atUs: number, into: Admission): boolean {
      nowUs = atUs
      return takeFirst(this.table, subject, this.limit, 1, into)
    }

    private isKey(subject: string): boolean {
      return this.isOwnName(subject) && !isNameOnly(subject)
    }
  }

  const stage: Stage = {
    source: 'memory',
    ask: (action, question) => (action === 'decide' ? decideNow(question) : peekNow(question)),
    refund: store.refund,
    renew: renewNow,
    reset: store.reset,
    close: store.close,
    oneUnit: (name, limit, isOwnName) => new OneUnitInMemory(tableOf(tables, name, limit), limit, isOwnName),
  }
  return toStore(stage, store)
}

function tableOf(tables: Map<string, Table>, name: string, limit: Limit): Table {
  let table = tables.get(name)
  if (table === undefined) {
    table = new Table(name, limit)
    tables.set(name, table)
  }
  return table
}

/**
 * Within a table the subject is the key, so that the common scope costs no new string. Another scope precedes it
 * with its length, after a colon, with which no subject begins: no id can be written to look like a scope. A name
 * that is not a subject also follows a colon, where `OneUnitInMemory` does not find it.
 */
function keyOf(subject: string, scope: string): string {
  if (scope !== 'global') return `:${scope.length}:${scope}${subject}`
  return isNameOnly(subject) ? `:${subject}` : subject
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
