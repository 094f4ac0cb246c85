import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Answer, Verdict } from '../../src/store/ask-store.js'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import type { RedisStore } from '../../src/store/redis/redis-store.ts'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.js'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { play, type Step, step, withoutCounters } from './history.ts'
import { regressions } from './regressions.ts'

/** The part of an answer that both must agree on; the embedded store also says when it decided. */
function comparable(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || !('verdicts' in answer)) return answer
  const { charged, verdicts, shadow } = answer as Answer
  return { charged, verdicts: verdicts.map(list => list.map(plain)), shadow: shadow.map(plain) }
}

function plain({ allowed, remaining, retryAfterUs, resetAfterUs, chargedAtUs }: Verdict): Verdict {
  return { allowed, remaining, retryAfterUs, resetAfterUs, chargedAtUs }
}

const HISTORIES = 900
const STEPS = 160

describe('the Lua scripts are the engine', () => {
  let server: RedisProcess
  let client: Redis
  /** With and without several checks in a call. */
  let together: RedisStore
  let alone: RedisStore
  let clock: ManualClock = manualClock()
  let histories = 0
  let steps = 0

  beforeAll(async () => {
    server = await startRedis()
    client = new Redis({ port: server.port, lazyConnect: true })
    const options = { deadlineMs: 60_000, testClockUs: () => clock.nowUs() }
    together = directRedisStore(client, options)
    alone = directRedisStore(client, { ...options, batch: false })
    await Promise.all([together.ready(), alone.ready()])
  })
  afterAll(async () => {
    await Promise.all([together.close(), alone.close()])
    await server.stop()
  })

  /** The answers of the engine and of the scripts in turn. */
  async function answersOf(history: readonly Step[], redis: RedisStore, subject: string): Promise<unknown[]> {
    clock = manualClock()
    return Promise.all(await play(history, [memoryStore({ clock }), redis], clock, subject))
  }

  /** The place of the first answer that differs, and both answers; null if they agree. */
  async function differenceIn(history: readonly Step[], redis: RedisStore, subject: string) {
    const answers = await answersOf(history, redis, subject)
    for (let index = 0; index < answers.length; index += 2) {
      const [engine, lua] = [comparable(answers[index]), comparable(answers[index + 1])]
      // Compares text, because the matcher takes longer than both stores together.
      if (JSON.stringify(lua) !== JSON.stringify(engine)) return { at: index / 2, engine, lua }
    }
    return null
  }

  async function compare(history: readonly Step[]): Promise<void> {
    const redis = ++histories % 2 === 0 ? together : alone
    steps += history.length
    if ((await differenceIn(history, redis, `user:${histories}`)) === null) return
    // The first call of a script is sent twice, by hash and by text, and so comes late: the second time all are known,
    // and what differs then differs because of the arithmetic.
    const difference = await differenceIn(history, redis, `user:again-${histories}`)
    if (difference === null) return
    expect(difference.lua, `answer ${difference.at} of the history`).toEqual(difference.engine)
  }

  it('the Lua scripts and the engine answer random histories of all algorithms without a difference', {
    timeout: 240_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 2 * STEPS, size: 'max' }),
        fc.boolean(),
        (history, hasCounters) => compare(hasCounters ? history : withoutCounters(history)),
      ),
      {
        numRuns: HISTORIES,
      },
    )
    expect(steps).toBeGreaterThanOrEqual(100_000)
  })

  for (const { name, history } of regressions) {
    it(`the Lua scripts and the engine answer alike: ${name}`, async () => {
      await compare(history)
      await compare(history)
    })
  }
})
