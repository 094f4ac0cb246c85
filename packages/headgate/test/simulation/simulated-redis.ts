/**
 * A simulated Redis: the engine decides, by the server's clock, one call after the other. Its history is a list of
 * calls; a failover to a replica that missed the last of them replays the others from the start.
 */

import type { Limit } from '../../src/algorithms/algorithm.ts'
import type { Check } from '../../src/check/check.ts'
import type { Question } from '../../src/store/ask-store.ts'
import type { scripts } from '../../src/store/redis/scripts.gen.ts'
import { decide, peek } from '../algorithms/decide-model.ts'
import { isConcurrency } from '../support/limit-kinds.ts'
import { isLasting } from './policies.ts'
import {
  readLooks,
  readQuestions,
  readRefunds,
  readRenewals,
  readReset,
  replyOf,
  replyToCheck,
} from './script-call.ts'

export type ScriptName = keyof typeof scripts

/** A script call as it arrives, and its sender. */
export interface ServerCall {
  readonly script: ScriptName
  readonly keys: readonly string[]
  readonly args: readonly string[]
  readonly process: string
  /** The check it was made for; null if there was none, or possibly several. */
  readonly checkId: number | null
}

/** An event of a key, as the laws need it. */
export interface KeyRecord {
  readonly what: 'charge' | 'refund' | 'reset' | 'renewal'
  readonly key: string
  readonly limit: Limit
  /** For a refund, the units that came back. */
  readonly units: number
  readonly unitsAsked: number
  /** The server time at which it counts; for a refund, at which it was made. */
  readonly atUs: number
  /** For a refund, when the units were charged, according to its sender. */
  readonly chargedAtUs: number | null
  /** When it happened, whatever the server's clock said. */
  readonly trueUs: number
  /** The index of the question's alternative that was charged: not the first if there was not enough for it. */
  readonly alternative: number
  readonly process: string
  readonly checkId: number | null
  /** The epoch of the clock and of the line of primaries in which it happened. */
  readonly clockEpoch: number
  readonly lineage: number
  /** Whether a failover has forgotten it. */
  lost: boolean
}

/** A heartbeat that Redis received. */
export interface HeardBeat {
  readonly process: string
  readonly trueUs: number
  readonly serverUs: number
  readonly clockEpoch: number
  /** When a failover forgot it. */
  lostAtUs: number | null
}

interface Done {
  readonly call: ServerCall
  readonly serverUs: number
  readonly trueUs: number
  readonly poisoned: ReadonlySet<string>
  readonly records: readonly KeyRecord[]
}

/** Errors of a server that cannot write but can still be read. */
const READS_STILL = /^(?:OOM|READONLY|NOREPLICAS|MISCONF)/

export class SimulatedRedis {
  readonly records: KeyRecord[] = []
  /** The same for permits and for what is settled afterwards. */
  readonly lasting: KeyRecord[] = []
  readonly beats: HeardBeat[] = []
  /** The error with which every call is rejected, if any. */
  rejection: string | null = null
  /** Keys with foreign data: a question about one of them fails alone. */
  poisonedKeys: ReadonlySet<string> = new Set()
  lostWrites = 0
  readonly #trueUs: () => number
  #offsetUs = 1_800_000_000_000_000
  #clockEpoch = 0
  #done: Done[] = []
  #knownScripts = new Set<ScriptName>()
  #nowUs = 0
  #states = new Map<string, unknown>()
  #fleet = new Map<string, number>()

  constructor(trueUs: () => number) {
    this.#trueUs = trueUs
  }

  /** By hash: rejected by a server that does not know the script. */
  evalsha(call: ServerCall): unknown {
    if (this.rejection === null && !this.#knownScripts.has(call.script)) {
      throw new Error('NOSCRIPT No matching script. Please use EVAL.')
    }
    return this.#run(call)
  }

  eval(call: ServerCall): unknown {
    if (this.rejection === null) this.#knownScripts.add(call.script)
    return this.#run(call)
  }

  forgetScripts(): void {
    this.#knownScripts.clear()
  }

  stepClock(byUs: number): void {
    this.#offsetUs += byUs
    this.#clockEpoch++
  }

  /** Another node takes over, without what was written in the last `lagUs`. */
  failOver(lagUs: number): number {
    const lostFromUs = this.#trueUs() - lagUs
    const kept = this.#done.filter(({ trueUs }) => trueUs <= lostFromUs)
    const lost = this.#done.slice(kept.length)
    for (const { records } of lost) for (const record of records) record.lost = true
    for (const beat of this.beats) if (beat.trueUs > lostFromUs) beat.lostAtUs ??= this.#trueUs()
    this.lostWrites++
    this.forgetScripts()
    this.#states = new Map()
    this.#fleet = new Map()
    for (const { call, serverUs, poisoned } of kept) {
      this.#nowUs = serverUs
      this.#execute(call, poisoned)
    }
    this.#done = kept
    return lost.length
  }

  /** Returns how long until the server's clock shows this time; 0 if it has. */
  untilServerUs(serverUs: number): number {
    return Math.max(0, serverUs - this.#trueUs() - this.#offsetUs)
  }

  #run(call: ServerCall): unknown {
    if (this.rejection !== null && !(READS_STILL.test(this.rejection) && call.script === 'peek')) {
      throw new Error(this.rejection)
    }
    this.#nowUs = this.#trueUs() + this.#offsetUs
    const { reply, records } = this.#execute(call, this.poisonedKeys)
    const when = { serverUs: this.#nowUs, trueUs: this.#trueUs() }
    this.#done.push({ call, ...when, poisoned: this.poisonedKeys, records })
    for (const record of records) {
      // A probe may also be of a permit, and nobody holds it.
      if (isLasting(record.key)) this.lasting.push(record)
      else if (!isConcurrency(record.limit)) this.records.push(record)
    }
    if (call.script === 'heartbeat') {
      this.beats.push({ process: call.process, ...when, clockEpoch: this.#clockEpoch, lostAtUs: null })
    }
    return reply
  }

  #execute(call: ServerCall, poisoned: ReadonlySet<string>): { reply: unknown; records: KeyRecord[] } {
    switch (call.script) {
      case 'decide':
        return this.#decide(call, readQuestions(call.keys, call.args), poisoned)
      case 'peek': {
        const replies = readLooks(call.keys, call.args).map(check => {
          const { verdicts } = peek({ alternatives: [[check]], shadow: [] }, this.#open, this.#nowUs)
          return replyToCheck(check, only(verdicts), structuredClone(this.#open(check)), this.#nowUs)
        })
        return { reply: [...replies, this.#nowUs], records: [] }
      }
      case 'refund':
        return this.#refund(call)
      case 'reset': {
        const checks = readReset(call.keys, call.args)
        for (const check of checks) {
          const { algorithm } = check.limit
          algorithm.reset(check.limit, this.#open(check), this.#nowUs)
        }
        const records = checks.map(check => this.#record('reset', check, {}, call))
        return { reply: checks.length, records }
      }
      case 'renew': {
        const renewals = readRenewals(call.keys, call.args)
        const held = renewals.map(({ check, takenAtUs }) => {
          const { limit, cost } = check
          return limit.algorithm.renew?.(limit, this.#open(check), cost, takenAtUs, this.#nowUs) === true
        })
        const records = renewals
          .filter((_, index) => held[index])
          .map(({ check, takenAtUs }) =>
            this.#record('renewal', check, { chargedAtUs: takenAtUs, units: check.cost }, call),
          )
        return { reply: held.map(Number), records }
      }
      case 'heartbeat':
        return { reply: this.#heartbeat(call.args), records: [] }
      case 'control':
      case 'permissions':
        return { reply: [], records: [] }
      case 'overrides':
        return { reply: [Math.floor(this.#nowUs / 1_000), '0', 0, 'same'], records: [] }
      case 'changes':
      case 'credit':
      case 'history':
      case 'statistics':
        throw new Error(`ERR the simulated Redis has no ${call.script} script`)
    }
  }

  /** The state of a check, made when it is first asked for. */
  readonly #open = ({ subject, limit }: Check): unknown => {
    const key = `${subject} ${limit.id}`
    if (!this.#states.has(key)) this.#states.set(key, limit.algorithm.empty())
    return this.#states.get(key)
  }

  #decide(call: ServerCall, questions: readonly Question[], poisoned: ReadonlySet<string>) {
    const records: KeyRecord[] = []
    const answers = questions.flatMap((question): unknown[] => {
      const checks = question.alternatives.flat()
      if (checks.some(({ subject }) => poisoned.has(subject))) {
        const failure = ['WRONGTYPE Operation against a key holding the wrong kind of value']
        return [failure, ...checks.map(() => 0), ...question.shadow.map(() => failure)]
      }
      const states = [...checks, ...question.shadow].map(check => structuredClone(this.#open(check)))
      const answer = decide(question, this.#open, this.#nowUs)
      const charged = question.alternatives[answer.charged] ?? []
      for (const [index, check] of charged.entries()) {
        const atUs = answer.verdicts[answer.charged]?.[index]?.chargedAtUs ?? this.#nowUs
        const { cost } = check
        const details = { units: cost, unitsAsked: cost, atUs, alternative: answer.charged }
        records.push(this.#record('charge', check, details, call))
      }
      return replyOf(question, answer, states, this.#nowUs)
    })
    return { reply: [...answers, this.#nowUs], records }
  }

  #refund(call: ServerCall) {
    const refunds = readRefunds(call.keys, call.args)
    const reply = refunds.map(({ check, units, chargedAtUs, heldSinceUs }) => {
      const { limit } = check
      return limit.algorithm.refund(limit, this.#open(check), units, chargedAtUs, this.#nowUs, heldSinceUs)
    })
    const records = refunds.map(({ check, units, chargedAtUs }, index) =>
      this.#record('refund', check, { units: reply[index] ?? 0, unitsAsked: units, chargedAtUs }, call),
    )
    return { reply, records }
  }

  /** Counts as heartbeat.lua does if nobody names a service. */
  #heartbeat([, member = '', keep, remember]: readonly string[]): [number, string, string, number, number] {
    const nowUs = this.#nowUs
    const before = this.#fleet.get(member) ?? ''
    this.#fleet.set(member, nowUs)
    for (const [other, atUs] of this.#fleet) {
      if (nowUs - atUs >= Number(remember) || atUs - nowUs >= Number(keep)) this.#fleet.delete(other)
    }
    const live = [...this.#fleet.values()].filter(atUs => nowUs - atUs < Number(keep)).length
    const { size } = this.#fleet
    return [live, String(nowUs), String(before), size, size]
  }

  #record(
    what: KeyRecord['what'],
    check: { subject: string; limit: Limit },
    details: Partial<KeyRecord>,
    { process, checkId }: ServerCall,
  ): KeyRecord {
    return {
      what,
      key: check.subject,
      limit: check.limit,
      units: details.units ?? 0,
      unitsAsked: details.unitsAsked ?? 0,
      atUs: details.atUs ?? this.#nowUs,
      chargedAtUs: details.chargedAtUs ?? null,
      trueUs: this.#trueUs(),
      alternative: details.alternative ?? 0,
      process,
      checkId,
      clockEpoch: this.#clockEpoch,
      lineage: this.lostWrites,
      lost: false,
    }
  }
}

function only<Item>(lists: readonly (readonly Item[])[]): Item {
  return lists[0]?.[0] as Item
}

/** Whether it is the key with which a breaker finds out whether a node decides. */
export function isProbe(key: string): boolean {
  return key.endsWith(':probe')
}
