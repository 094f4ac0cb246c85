/** Made-up callers on a cluster: the caller's key and its address's are in two slots, charged all or none. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseConfig } from '../../src/config.js'
import { identifyByConfig } from '../../src/identify.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import { redisStore } from '../../src/redis.js'
import type { Identity } from '../../src/subject/identify.js'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { clusterClient, LIBRARIES } from './topologies.ts'

const FILE = `policies: { api: { algorithm: sliding-window-log, limit: 3, window: 1h } }
default: { policy: api }
identify:
  - session: { cookie: sid, unverified: true, perAddress: 5 }
  - ip
`

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster.stop())

describe.each(LIBRARIES)('made-up callers on a cluster, with %s', library => {
  it('made-up callers get five budgets of an address, one by one and many at once, and a denial charges neither', async () => {
    const config = await parseConfig(FILE, 'file.yaml')
    const identify = identifyByConfig(config)
    const store = redisStore(clusterClient(cluster)(library).client, { deadlineMs: 5_000, prefix: library })
    const ruled = createLimiter({ config, store, subject: { secret: 'of the test' } })
    const ask = async (peer: string, sid: string) => {
      const header = (name: string) => (name === 'cookie' ? `sid=${sid}` : undefined)
      const request = { method: 'GET', url: '/', peer, route: undefined, header }
      const { subjects, perAddress } = identify(request) as Identity
      const decision = await ruled.request({ subject: subjects, ...(perAddress && { perAddress }) })
      expect(decision.source).toBe('redis')
      return decision.allowed
    }
    const passed = (answers: readonly boolean[]) => answers.filter(allowed => allowed).length
    const inTurn: boolean[] = []
    // One session over its limit takes nothing from the address.
    for (let time = 0; time < 10; time++) inTurn.push(await ask('192.0.2.1', 'same'))
    expect(passed(inTurn)).toBe(3)
    for (let session = 0; session < 30; session++) inTurn.push(await ask('192.0.2.1', `${session}`))
    expect(passed(inTurn)).toBe(15)
    const atOnce = await Promise.all(
      Array.from({ length: 100 }, (_, session) => ask('192.0.2.2', `s${session}`)),
    )
    expect(passed(atOnce)).toBeLessThanOrEqual(15)
    let rest = passed(atOnce)
    // Slots that were asked at the same time may have denied each other; what is left passes now.
    for (let session = 100; session < 130; session++) if (await ask('192.0.2.2', `s${session}`)) rest++
    expect(rest).toBe(15)
    await ruled.close()
  })
})
