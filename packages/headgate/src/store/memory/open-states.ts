import { decide } from '../../engine/decide.js'
import { algorithmOf, type State } from '../../engine/legacy-algorithm.js'
import type { Answer, Check, Question } from '../../engine/question.js'
import { keyOf } from './state-key.js'
import type { States } from './states.js'
import { Table } from './table.js'

const OVERFLOW_KEYS = 64

/** The states of one question, open at once, so that it is charged as a whole or not at all. */
export class OpenStates {
  /** States shared by checks for which there is no room beside the others of their question. */
  private readonly overflow = new Map<string, Table>()
  private readonly added: { readonly table: Table; readonly key: string }[] = []
  private nowUs = 0

  constructor(private readonly states: States) {}

  /** Decides a question in full, whatever checks it has. */
  decide(question: Question, nowUs: number): Answer {
    this.begin(nowUs)
    const answer = decide(question, this.open, nowUs)
    this.end()
    return answer
  }

  /** Writes to the state of one check; a forgotten key gets a row for it. */
  write<Result>(check: Check, nowUs: number, write: (state: State) => Result): Result {
    this.begin(nowUs)
    const result = write(this.open(check))
    this.end()
    return result
  }

  clear(): void {
    this.overflow.clear()
  }

  private begin(nowUs: number): void {
    this.nowUs = nowUs
    this.states.beginTurn()
  }

  private readonly open = (check: Check): State => {
    const { states, nowUs } = this
    const { name, limit, cost } = check
    const table = states.tableOf(name, limit)
    const key = keyOf(check.subject, check.scope)
    const known = table.open(key, limit, states.turn)
    if (known !== undefined) return known
    const former = states.stateOfForgotten(name, limit, key, nowUs)
    // It is denied on the stand-in state, so no room has to be made for it.
    if (former !== null && algorithmOf(limit).waitUs(limit, former, cost, nowUs) > 0) return former
    const state = states.add(table, key, limit, former, nowUs)
    if (state === null) return this.openShared(check, key)
    this.added.push({ table, key })
    return state
  }

  private openShared({ name, limit }: Check, key: string): State {
    let table = this.overflow.get(name)
    if (table === undefined) {
      table = new Table(name, limit)
      this.overflow.set(name, table)
    }
    const { turn } = this.states
    return table.open(overflowKey(key), limit, turn) ?? table.add(overflowKey(key), limit, turn)
  }

  /** A denied request leaves no trace: states added to look at but not charged are removed again. */
  private end(): void {
    if (this.added.length === 0) return
    for (const { table, key } of this.added) {
      if (table.isUncharged(key, this.nowUs)) this.states.delete(table, key)
    }
    this.added.length = 0
  }
}

function overflowKey(key: string): string {
  let hash = 0
  for (let index = 0; index < key.length; index++) hash = (hash * 31 + key.charCodeAt(index)) | 0
  return `${(hash >>> 0) % OVERFLOW_KEYS}`
}
