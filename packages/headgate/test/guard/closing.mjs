// A process that asks, closes its store and has nothing left to do. Prints how its decisions were made, and when it closed.
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { createLimiter, slidingWindowLog } from '../../dist/index.js'
import { redisStore } from '../../dist/redis.js'

const { library, topology, port, wait, checks = 20 } = JSON.parse(process.argv[2])
const nodes = [{ host: '127.0.0.1', port }]
const makers = {
  ioredis: {
    single: () => new Redis({ port, lazyConnect: true }),
    cluster: () => new Cluster(nodes, { lazyConnect: true }),
  },
  'node-redis': {
    single: () => createClient({ socket: { port } }),
    cluster: () => createCluster({ rootNodes: nodes.map(socket => ({ socket })) }),
  },
}
// Where Redis is there, it is not the deadline that ends the checks.
const store = redisStore(makers[library][topology](), { logEveryMs: 0, deadlineMs: wait ? 2_000 : 30 })
const policies = { api: slidingWindowLog({ limit: 100, window: '1m' }) }
const limiter = createLimiter({ store, policies })
if (wait) await store.ready()
const asked = Array.from({ length: checks }, (_, id) => limiter.check(`user:${id}`, { policy: 'api' }))
await limiter.close()
const closedAt = performance.now()
const sources = (await Promise.all(asked)).map(({ source }) => source)
process.on('exit', () => {
  const lingeredMs = Math.round(performance.now() - closedAt)
  process.stdout.write(JSON.stringify({ sources: [...new Set(sources)], lingeredMs }))
})
