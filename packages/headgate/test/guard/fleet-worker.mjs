// One process of a fleet: asks for one subject, evenly spread over a window, and reports when it was admitted.
import { createClient } from 'redis'
import { createLimiter, slidingWindowLog } from '../../dist/index.js'
import { redisStore } from '../../dist/redis.js'

const { url, limit, windowMs, requests } = JSON.parse(process.argv[2])
const store = redisStore(createClient({ url }), {
  deadlineMs: 100,
  onWarning: () => {},
  logEveryMs: 86_400_000,
})
const policies = { api: slidingWindowLog({ limit, window: `${windowMs}ms` }) }
const limiter = createLimiter({ store, policies })
await store.ready()

process.on('message', message => {
  if (message === 'count') process.send({ live: store.health().liveProcesses })
  if (message === 'go') void run()
})
process.send('ready')

async function run() {
  const admitted = []
  const pending = []
  for (let request = 0; request < requests; request++) {
    pending.push(
      limiter.check('user:1', { policy: 'api' }).then(decision => {
        if (decision.allowed) admitted.push(decision.source)
      }),
    )
    await new Promise(resolve => setTimeout(resolve, windowMs / requests))
  }
  await Promise.all(pending)
  process.send({ admitted })
}
