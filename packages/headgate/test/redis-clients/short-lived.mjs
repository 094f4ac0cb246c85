// A process that decides, closes its stores and has nothing left to do: it must end by itself.
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster, createSentinel } from 'redis'
import { slidingWindowLog } from '../../dist/index.js'
import { redisStore } from '../../dist/redis.js'
import { askStore } from '../../dist/store/ask-store.js'

const { library, topology, port, ports, sentinels, name } = JSON.parse(process.argv[2])

function make() {
  const nodes = (ports ?? []).map(each => ({ host: '127.0.0.1', port: each }))
  if (library === 'ioredis') {
    if (topology === 'cluster') return new Cluster(nodes, { lazyConnect: true })
    if (topology === 'sentinel') return new Redis({ name, sentinels, lazyConnect: true })
    return new Redis({ port, lazyConnect: true })
  }
  if (topology === 'cluster') return createCluster({ rootNodes: nodes.map(socket => ({ socket })) })
  if (topology === 'sentinel') return createSentinel({ name, sentinelRootNodes: sentinels })
  return createClient({ socket: { port } })
}

const limit = slidingWindowLog({ limit: 5, window: '60s' })
for (const use of ['scripts', 'functions']) {
  const store = redisStore(make(), { use, deadlineMs: 5_000 })
  const check = { subject: `user:${process.pid}`, scope: 'global', name: 'test.log-60s', limit, cost: 1 }
  const answer = await askStore(store, { alternatives: [[check]], shadow: [] })
  await store.close()
  process.stdout.write(`${use} ${answer.charged} ${answer.source ?? store.source}\n`)
}
