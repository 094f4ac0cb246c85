/**
 * Nothing that a client can make larger grows without bound: subjects nobody has seen are driven beyond every bound in a
 * separate process, with Redis there and gone, and must leave the heap as it was.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { findFreePort } from '../support/free-port.ts'
import { startRedis } from '../support/redis-process.ts'

/** Asks for new subjects, more than any bound, then for a fifth as many again, and reports what those have left. */
const DRIVER = `
  import { Redis } from 'ioredis'
  import { createLimiter, memoryStore, slidingWindowCounter, slidingWindowLog, tokenBucket } from './dist/index.js'
  import { redisStore } from './dist/redis.js'
  const [port, subjects] = process.argv.slice(1).map(Number)
  console.warn = () => {}
  const client = new Redis({ port, lazyConnect: true, retryStrategy: () => 1_000 })
  client.on('error', () => {})
  const store = redisStore(client, { processes: 4 })
  const limiter = createLimiter({
    store,
    policies: {
      once: slidingWindowLog({ limit: 1, window: '1h' }),
      dear: tokenBucket({ capacity: 10, refillPerSecond: 0.01 }),
      hot: { limits: slidingWindowCounter({ limit: 1_000, window: '1h' }), lease: 'auto' },
    },
  })
  const embedded = createLimiter({
    store: memoryStore({ maxKeys: 10_000 }),
    policies: { once: slidingWindowCounter({ limit: 1, window: '1h' }) },
  })
  let next = 0
  async function ask() {
    const id = (next++).toString(36) + '-' + Math.random().toString(36).slice(2)
    await limiter.check('apikey:' + id, { policy: 'once' })
    await limiter.check('apikey:' + id, { policy: 'once' })
    await limiter.check('user:' + id, { policy: 'dear', cost: 9, scope: '/' + id })
    await limiter.check('user:' + id, { policy: 'hot' })
    await embedded.check('user:' + id, { policy: 'once' })
    await embedded.check('user:' + id, { policy: 'once' })
  }
  async function round(subjects) {
    for (let done = 0; done < subjects; done += 500) {
      await Promise.all(Array.from({ length: 500 }, ask))
      // A turn of the event loop, which timers and sockets need.
      await new Promise(resolve => setImmediate(resolve))
    }
    gc()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const before = await round(subjects)
  const after = await round(subjects / 5)
  console.log(JSON.stringify({ grownBytes: after - before, asked: next, decidedHere: store.health().fallbackAllowed }))
  process.exit()
`

async function drive(port: number, subjects: number) {
  const args = ['--expose-gc', '--input-type=module', '-e', DRIVER, String(port), String(subjects)]
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: join(import.meta.dirname, '../..'),
  })
  return JSON.parse(stdout) as {
    readonly grownBytes: number
    readonly asked: number
    readonly decidedHere: number
  }
}

describe('a flood of subjects nobody has seen', () => {
  const LONG = process.env.HEADGATE_LONG === '1'
  /** The size of one generation of a map. */
  const SLACK_BYTES = 16e6

  it('a flood of subjects nobody has seen leaves the heap as it was while Redis is gone', async () => {
    const { grownBytes, asked, decidedHere } = await drive(await findFreePort(), LONG ? 1_000_000 : 105_000)
    console.info(`${asked} subjects without Redis: the last sixth left ${Math.round(grownBytes / 1e3)} kB`)
    expect(decidedHere).toBeGreaterThan(asked / 2)
    expect(grownBytes).toBeLessThan(SLACK_BYTES)
  }, 600_000)

  // A million subjects through Redis take minutes.
  if (LONG) {
    it('a flood of subjects nobody has seen leaves the heap as it was while Redis is there', async () => {
      const server = await startRedis()
      try {
        const { grownBytes } = await drive(server.port, 1_000_000)
        expect(grownBytes).toBeLessThan(SLACK_BYTES)
      } finally {
        await server.stop()
      }
    }, 3_600_000)
  }
})
