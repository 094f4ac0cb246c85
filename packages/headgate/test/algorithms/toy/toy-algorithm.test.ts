/** A new algorithm is one TypeScript file, one Lua file and one case table: here with a toy, against the built scripts. */
import { execFile } from 'node:child_process'
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NOBODY_LISTENS } from '../../../src/check/plan.ts'
import { Plans } from '../../../src/check/plans.ts'
import { createLimiter, decisionHeaders, memoryStore } from '../../../src/index.ts'
import { decodeChecks } from '../../../src/store/redis/decode.ts'
import { type ChecksCall, encodeChecks } from '../../../src/store/redis/encode.ts'
import { StraightLines } from '../../../src/store/redis/straight-line.ts'
import { caseTable } from '../../../src/testing/cases/case-table.ts'
import { manualClock } from '../../../src/testing/manual-clock.ts'
import { seededRandom } from '../../../src/testing/seeded-random.ts'
import { type RedisProcess, startRedis } from '../../support/redis-process.ts'
import { openConnection, type RespConnection } from '../../support/resp.ts'
import { fixedWindow } from './fixed-window.ts'

const PACKAGE = join(import.meta.dirname, '../../..')
const START_US = 1_700_000_040_000_000
const limit = fixedWindow({ limit: 3, window: '1m' })
const { cases } = caseTable('fixed window: 3 a minute', limit, [
  [0, 1, true, 2, 0, 60_000, 'the first opens the window'],
  [59_000, 2, true, 0, 0, 1_000, 'the limit is used up'],
  [59_000, 1, false, 0, 1_000, 1_000, 'until the window ends'],
  [60_000, 3, true, 0, 0, 60_000, 'the next window knows nothing of the last'],
  [60_000, 4, false, 0, null, 60_000, 'a cost above the limit never fits'],
])

describe('a toy algorithm', () => {
  let redis: RedisProcess
  let connection: RespConnection
  let folder = ''
  let script = ''

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'headgate-lua-'))
    await cp(join(PACKAGE, 'lua'), join(folder, 'lua'), { recursive: true })
    await cp(join(import.meta.dirname, 'fixed_window.lua'), join(folder, 'lua/algorithms/fixed_window.lua'))
    const target = join(folder, 'scripts.gen.ts')
    await promisify(execFile)(process.execPath, [
      join(PACKAGE, 'scripts/build-lua.mjs'),
      `--from=${pathToFileURL(join(folder, 'lua/')).href}`,
      `--to=${pathToFileURL(target).href}`,
    ])
    expect(await readFile(target, 'utf8')).toContain('scripts')
    const built = (await import(target)) as typeof import('../../../src/store/redis/scripts.gen.ts')
    script = built.scripts.decide.text
    redis = await startRedis()
    connection = await openConnection(redis.port)
  })
  afterAll(async () => {
    connection?.close()
    await redis?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  async function askRedis(subject: string, units: number, nowUs: number) {
    const check = { subject, scope: 'global', name: 'toy', limit, cost: units }
    const asked = new Plans(NOBODY_LISTENS).pending({ alternatives: [[check]], shadow: [] })
    // No straight-line scripts: those are made of what the package has.
    const lines = new StraightLines(true, true, null)
    const [call] = encodeChecks([asked], false, lines, state => state.subject, String(nowUs), false, nowUs)
    const { keys, args } = call as ChecksCall
    const reply = await connection.send('EVAL', script, keys.length, ...keys, ...args)
    decodeChecks(reply, call as ChecksCall, { nowUs: () => nowUs, learn() {} }, new Map())
    return asked
  }

  it.each(cases)('a toy algorithm keeps its cases in memory and on Redis: $because', async row => {
    // The rows are a history: each is asked after those before it.
    const state = limit.algorithm.empty()
    const out = { waitUs: 0, remaining: 0, resetAfterUs: 0, chargedAtUs: 0 }
    const subject = `user:${row.because}`
    for (const { atMs, cost, ...expected } of cases.slice(0, cases.indexOf(row) + 1)) {
      const nowUs = START_US + atMs * 1_000
      limit.algorithm.decide(limit, state, cost, nowUs, true, out)
      const asked = await askRedis(subject, cost, nowUs)
      for (const numbers of [out, asked]) {
        const waitMs = numbers.waitUs === Number.POSITIVE_INFINITY ? null : numbers.waitUs / 1_000
        expect([numbers.waitUs === 0, numbers.remaining, waitMs, numbers.resetAfterUs / 1_000]).toEqual([
          expected.allowed,
          expected.remaining,
          expected.retryAfterMs,
          expected.resetAfterMs,
        ])
      }
    }
  })

  it('a toy algorithm decides alike in TypeScript and in Lua, over random histories', async () => {
    const random = seededRandom(7)
    for (let history = 0; history < 40; history++) {
      const state = limit.algorithm.empty()
      const out = { waitUs: 0, remaining: 0, resetAfterUs: 0, chargedAtUs: 0 }
      let nowUs = START_US
      for (let step = 0; step < 12; step++) {
        nowUs += Math.floor((random() - 0.1) * 40_000_000)
        const units = 1 + Math.floor(random() * 4)
        limit.algorithm.decide(limit, state, units, nowUs, true, out)
        const { waitUs, remaining, resetAfterUs, chargedAtUs } = await askRedis(
          `user:h${history}`,
          units,
          nowUs,
        )
        expect({ waitUs, remaining, resetAfterUs, chargedAtUs }).toEqual(out)
      }
    }
  })

  it('a toy algorithm works in a limiter: headers, multiplier, inspection, refunds and reset', async () => {
    const clock = manualClock()
    const limiter = createLimiter({ store: memoryStore({ clock }), policies: { toy: limit } })
    const first = await limiter.check('user:1', { policy: 'toy', cost: 2 })
    expect(decisionHeaders(first)).toContainEqual(['X-RateLimit-Remaining', '1'])
    expect(await limiter.refund(first)).toBe(2)
    await limiter.control.set({ multiplier: 2 })
    expect(await limiter.check('user:1', { policy: 'toy', cost: 6 })).toMatchObject({
      allowed: true,
      limit: 6,
    })
    const { limits } = await limiter.inspect('user:1')
    expect(limits).toMatchObject([{ algorithm: 'fixed-window', used: 6, remaining: 0 }])
    await limiter.reset('user:1', { policy: 'toy' })
    expect((await limiter.peek('user:1', { policy: 'toy' })).remaining).toBe(6)
    await limiter.close()
  })
})
