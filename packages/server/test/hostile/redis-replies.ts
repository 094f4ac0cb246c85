/** Something in place of Redis that answers, but not as the scripts do. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createDice } from '../../../headgate/test/simulation/dice.js'
import { askNonsense, CLIENTS, NONSENSE } from '../../../headgate/test/support/nonsense-redis.js'
import type { Attack, AttackGroup } from './attack.js'

/** Far beyond any deadline: a question that is not answered by then never will be. */
const HANGS_AFTER_MS = 20_000
const IN_SHORT = 4

const malformedReplies: Attack = {
  name: 'malformed replies',
  does: 'answers every script with wrong types, wrong sizes, NaN, huge numbers and half an answer, to both clients and over REST',
  expected:
    'the failure mode decides each question: exactly the limit passes, none with `closed`, and nothing hangs',
  inShort: true,
  async run({ seed, isShort }) {
    const dice = createDice(seed)
    let [asked, slowestMs, replies] = [0, 0, 0]
    for (const client of CLIENTS) {
      const chosen = isShort ? Array.from({ length: IN_SHORT }, () => dice.pick(NONSENSE)) : NONSENSE
      for (const nonsense of chosen) {
        const outcome = await Promise.race([askNonsense(client, nonsense), sleep(HANGS_AFTER_MS, null)])
        const shown = JSON.stringify(nonsense).slice(0, 60)
        if (outcome === null) throw new Error(`${client} hangs on ${shown}`)
        asked += outcome.asked
        slowestMs = Math.max(slowestMs, outcome.slowestMs)
        replies++
      }
    }
    return `${asked} questions to ${replies} servers were decided here, the slowest in ${Math.ceil(slowestMs)} ms`
  },
}

export const redisReplies: AttackGroup = { title: 'A Redis that is none', attacks: [malformedReplies] }
