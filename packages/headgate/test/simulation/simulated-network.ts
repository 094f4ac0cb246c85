/**
 * The network between the processes and Redis. A message may be late, overtake another, or be lost in either
 * direction. A connection may break, and its unanswered calls are then known to be lost, but not whether they were
 * executed.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { RedisConnection } from '../../src/store/redis/connection.ts'
import { scripts } from '../../src/store/redis/scripts.gen.ts'
import type { Dice } from './dice.ts'
import type { History } from './history.ts'
import type { ScriptName, ServerCall, SimulatedRedis } from './simulated-redis.ts'
import type { Host, VirtualTime } from './virtual-time.ts'

/** The check a call is made for, across promises, in a run where each call is made for one. */
export const presentCheck = new AsyncLocalStorage<number>()

/** The current behaviour of the network. */
export interface Conditions {
  loseRequest: number
  loseReply: number
  /** Mean latency of a message, in microseconds. */
  latencyUs: number
  /** The share of messages that take fifty times as long, and so arrive after younger ones. */
  straggling: number
  /** Processes that reach nobody. */
  readonly cutOff: Set<string>
  /** When a frozen server continues. */
  frozenUntilUs: number
}

export const CALM = { loseRequest: 0, loseReply: 0, latencyUs: 300, straggling: 0 } as const
/** When an operating system gives up a silent connection. */
const GIVE_UP_US = 20_000_000
const RECONNECT_US = 20_000

const NAMES = Object.keys(scripts) as ScriptName[]
const BY_SHA = new Map<string, ScriptName>(NAMES.map(name => [scripts[name].sha, name]))
const BY_TEXT = new Map<string, ScriptName>(NAMES.map(name => [scripts[name].text, name]))

export interface SimulatedConnection extends RedisConnection {
  /** Calls without an answer. */
  unanswered(): number
  /** The answers to heartbeats that arrived: when, and the server time in them. */
  readonly beatsAnswered: readonly BeatAnswered[]
  /** The other side reports that the connection is gone. */
  reset(): void
  /** Breaks connections that lost a message, as would happen sooner or later. */
  heal(): void
}

interface BeatAnswered {
  readonly atUs: number
  readonly serverUs: number
}

/** By hash, or with its text because the server did not know it. */
export type SentAs = 'evalsha' | 'eval'

export interface NetworkParts {
  readonly time: VirtualTime
  readonly redis: SimulatedRedis
  readonly conditions: Conditions
  readonly history: History
  readonly dice: Dice
}

export function connect(host: Host, parts: NetworkParts, onSend: (call: ServerCall, how: SentAs) => void) {
  const { time, redis, conditions, history, dice } = parts
  const owed = new Set<(error: Error) => void>()
  const beatsAnswered: BeatAnswered[] = []
  let connectedAtUs = time.nowUs() + dice.wait(RECONNECT_US)
  let lostSomething = false
  let closed = false

  function travelUs(): number {
    const slow = dice.chance(conditions.straggling) ? 50 : 1
    return 50 + dice.wait(conditions.latencyUs * slow)
  }

  function loses(probability: number): boolean {
    return dice.chance(probability) || conditions.cutOff.has(host.name)
  }

  function breakOff(why: string): void {
    lostSomething = false
    connectedAtUs = time.nowUs() + dice.wait(RECONNECT_US)
    const failures = [...owed]
    owed.clear()
    for (const fail of failures) time.after(0, 'message', host, () => fail(new Error(why)))
  }

  function lose(what: () => string): void {
    history.write(host.name, () => `${what()} is lost`)
    lostSomething = true
    time.after(dice.between(GIVE_UP_US / 20, GIVE_UP_US), 'message', host, () => {
      if (lostSomething) breakOff('read ETIMEDOUT')
    })
  }

  function send(how: SentAs, script: ScriptName, keys: string[], args: string[]) {
    if (closed || time.nowUs() < connectedAtUs) return Promise.reject(new Error('the connection is closed'))
    const call: ServerCall = {
      script,
      keys,
      args,
      process: host.name,
      checkId: presentCheck.getStore() ?? null,
    }
    onSend(call, how)
    return new Promise<unknown>((resolve, reject) => {
      owed.add(reject)
      const answer = (settle: () => void): void => {
        if (!owed.delete(reject)) return
        settle()
      }
      const arrive = (): void => {
        if (conditions.frozenUntilUs > time.nowUs()) {
          time.after(conditions.frozenUntilUs - time.nowUs(), 'message', null, arrive)
          return
        }
        const settle = carryOut(how, call, resolve, reject)
        if (loses(conditions.loseReply)) lose(() => `the reply to ${script} ${label(call)}`)
        else time.after(travelUs(), 'message', host, () => answer(settle))
      }
      if (loses(conditions.loseRequest)) lose(() => `${script} ${label(call)}`)
      else time.after(travelUs(), 'message', null, arrive)
    })
  }

  function carryOut(
    how: SentAs,
    call: ServerCall,
    resolve: (reply: unknown) => void,
    reject: (error: Error) => void,
  ): () => void {
    try {
      const reply = redis[how](call)
      history.write(
        'redis',
        () => `${call.script} ${label(call)} of ${call.process}: ${JSON.stringify(reply)}`,
      )
      return () => {
        if (call.script === 'heartbeat') {
          beatsAnswered.push({ atUs: time.nowUs(), serverUs: Number((reply as [number, string])[1]) })
        }
        resolve(reply)
      }
    } catch (error) {
      history.write(
        'redis',
        () => `${call.script} ${label(call)} of ${call.process}: ${(error as Error).message}`,
      )
      return () => reject(error as Error)
    }
  }

  const connection: SimulatedConnection = {
    evalsha: (sha, keys, args) => send('evalsha', BY_SHA.get(sha) as ScriptName, keys, args),
    eval: (text, keys, args) => send('eval', BY_TEXT.get(text) as ScriptName, keys, args),
    ready: () =>
      new Promise(resolve => {
        time.after(Math.max(0, connectedAtUs - time.nowUs()), 'message', host, resolve)
      }),
    replace() {
      history.write(host.name, () => 'replaces its connection')
      breakOff('the connection was replaced')
    },
    async close() {
      closed = true
      breakOff('the connection is closed')
    },
    unanswered: () => owed.size,
    beatsAnswered,
    reset: () => breakOff('read ECONNRESET'),
    heal: () => {
      if (lostSomething) breakOff('read ECONNRESET')
    },
  }
  return connection
}

function label({ checkId, keys }: ServerCall): string {
  const names = [...new Set(keys.map(key => key.split(':').slice(2).join(':')))].join(' ')
  return checkId === null ? names : `#${checkId} ${names}`
}
