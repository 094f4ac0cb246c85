import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { createLimiter, slidingWindowCounter, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'
import { openIoredis } from './clients.js'
import { UNIFORM_KEYS } from './workloads.js'

const run = promisify(execFile)

const REQUESTS = 200_000
const PIPELINE = 64
/** redis-benchmark replaces this with a random number. */
const RANDOM = '__rand_int__'

const LIMITS = {
  counter: slidingWindowCounter({ limit: 1_000_000_000, window: 86_400 }),
  bucket: tokenBucket({ capacity: 1_000_000_000, refillPerSecond: 10_000 }),
}

/**
 * Measures the most decisions a second that our own script can make on this server: redis-benchmark sends the words of
 * one real decision in pipelines, for random keys.
 *
 * @param {import('./server.js').Server} server
 * @param {keyof typeof LIMITS} algorithm
 * @returns {Promise<number>}
 */
export async function measureCeiling(server, algorithm) {
  const { sha, keys, args } = await recordDecision(server.url, algorithm)
  const words = ['EVALSHA', sha, String(keys.length), ...keys, ...args]
  const { stdout } = await run('redis-benchmark', [
    '-p',
    String(server.port),
    '-n',
    String(REQUESTS),
    '-P',
    String(PIPELINE),
    '-r',
    String(UNIFORM_KEYS),
    '--csv',
    ...words,
  ])
  // "test","rps",… and then a line of figures, the name of which may contain anything.
  const figures = stdout.trim().split('\n').at(-1)?.split('","')
  const perSecond = Number(figures?.at(-7))
  if (!(perSecond > 0)) throw new Error(`redis-benchmark said something unexpected:\n${stdout}`)
  return perSecond
}

/** @param {string} url @param {keyof typeof LIMITS} algorithm */
async function recordDecision(url, algorithm) {
  const client = await openIoredis(url)
  /** @type {{ sha: string, keys: string[], args: string[] }[]} */
  const calls = []
  const connection = {
    /** @param {string} sha @param {string[]} keys @param {string[]} args */
    evalsha(sha, keys, args) {
      if (keys.some(key => key.includes(RANDOM))) calls.push({ sha, keys, args })
      return client.evalsha(sha, keys.length, ...keys, ...args)
    },
    /** @param {string} text @param {string[]} keys @param {string[]} args */
    eval: (text, keys, args) => client.eval(text, keys.length, ...keys, ...args),
  }
  const store = redisStore(connection, { prefix: 'ceiling', deadlineMs: 5_000 })
  const limiter = createLimiter({ store, policies: { api: LIMITS[algorithm] } })
  const decision = await limiter.check(`user:${RANDOM}`, { policy: 'api' })
  await limiter.close()
  client.disconnect()
  const [call] = calls
  if (call === undefined || decision.source !== 'redis') throw new Error('the decision was not made by Redis')
  return call
}
