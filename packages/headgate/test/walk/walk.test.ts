/** ARCHITECTURE.md walks through one check and one request. Here they are made, and the page is compared with what ran. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { expectWalked, hopsOf } from './walk-page.ts'

const RECORDER = fileURLToPath(new URL('record-walk.mjs', import.meta.url))

/** Files a reader may have to open to follow one check. It may be lowered, not raised. */
const MOST_FILES = 38

let redis: RedisProcess
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

describe('the walk through the sources', () => {
  it.each([
    ['http', 'An HTTP request'],
    ['request', 'A request by the rules'],
    ['check', 'A check on Redis'],
    ['unit', 'One unit of one limit'],
  ] as const)('the walk passes every function that the page names for a %s', async (kind, heading) => {
    await expectWalked(heading, RECORDER, [redis.url, kind])
  })

  it('the walk hands a question on through at most twenty files, to the wire and back', () => {
    expect(new Set(hopsOf('A check on Redis').map(({ file }) => file)).size).toBeLessThanOrEqual(20)
  })

  it(`the walk of a check runs code of at most ${MOST_FILES} files, helpers included`, async () => {
    const walks = [1, 2, 3].map(() => expectWalked('A check on Redis', RECORDER, [redis.url, 'check']))
    // In one of them a timer may have run something else beside it.
    expect(Math.min(...(await Promise.all(walks)))).toBeLessThanOrEqual(MOST_FILES)
  })
})
