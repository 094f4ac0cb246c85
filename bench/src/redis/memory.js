import { UNIFORM_KEYS } from './workloads.js'

/** One contestant for each layout of a key; the client makes no difference. */
const FORMATS = [
  'headgate, sliding-window counter · node-redis',
  'headgate, token bucket · node-redis',
  'rate-limiter-flexible · ioredis',
  'rate-limit-redis (express-rate-limit) · ioredis',
  '@upstash/ratelimit, sliding window · ioredis',
  '@upstash/ratelimit, token bucket · ioredis',
  '@fastify/rate-limit · ioredis',
]

/**
 * Measures what a key that asked once costs in Redis, everything included.
 *
 * @param {import('./server.js').Server} server
 * @param {import('./rounds.js').Field} field
 * @param {(step: string) => void} tell
 */
export async function measureMemory(server, field, tell) {
  const memory = []
  for (const id of FORMATS) {
    tell(id)
    // Connects and loads its script before anything is measured.
    await field.slice(id, { workload: 'a', inFlight: 1, seconds: 0 })
    await server.empty()
    const before = await server.usedBytes()
    await field.fill(id)
    memory.push({ id, bytesPerKey: ((await server.usedBytes()) - before) / UNIFORM_KEYS })
  }
  await server.empty()
  return memory
}
