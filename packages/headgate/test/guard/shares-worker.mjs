// One process of a fleet: asks for one subject all the time until it is told to stop, and reports what was admitted when.
import { createClient } from 'redis'
import { createLimiter, slidingWindowLog } from '../../dist/index.js'
import { redisStore } from '../../dist/redis.js'

const { url, limit, windowMs, everyMs } = JSON.parse(process.argv[2])
const store = redisStore(createClient({ url }), { onWarning: () => {}, logEveryMs: 86_400_000 })
const limiter = createLimiter({
  store,
  policies: { api: slidingWindowLog({ limit, window: `${windowMs}ms` }) },
})
await store.ready()
const admitted = []

process.on('message', message => {
  if (message === 'count') process.send({ live: store.health().liveProcesses })
  if (message === 'go') setInterval(ask, everyMs)
  if (message === 'stop') {
    process.send({ admitted, sharedAmong: store.health().sharedAmong }, () => process.exit())
  }
})
process.send('ready')

async function ask() {
  const { allowed, source } = await limiter.check('user:1', { policy: 'api' })
  // One clock for all processes of a machine.
  if (allowed) admitted.push({ atMs: performance.timeOrigin + performance.now(), source })
}
