// One process of a fleet: does the job its parent sends, with the built library, and reports back.
// Limits come as plain data, so that parent and worker cannot disagree about them.
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'
import { redisStore } from '../../dist/redis.js'

// What is proven is the count, not the speed: a busy machine must not turn into an unknown outcome.
const DEADLINE_MS = 20_000

function connect({ client, ports, cluster }) {
  const urls = ports.map(port => `redis://127.0.0.1:${port}`)
  if (client === 'ioredis') return cluster ? new Cluster(urls) : new Redis(urls[0])
  return cluster ? createCluster({ rootNodes: urls.map(url => ({ url })) }) : createClient({ url: urls[0] })
}

/** Mulberry32: the same seed asks for the same things in the same order. */
function randomFrom(seed) {
  let state = seed >>> 0
  return below => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

/** Asks as fast as it can for `durationMs` and writes every admission down, with the store's time. */
async function saturate(store, { checks, costs, inFlight, durationMs, seed }) {
  const admissions = []
  let decisions = 0
  const endsAt = performance.now() + durationMs

  async function ask(random) {
    while (performance.now() < endsAt) {
      const cost = costs[random(costs.length)]
      const subject = checks[random(checks.length)]
      const first = random(subject.length)
      // One question in eight is about two limits at once: charged together or not at all.
      const picked = random(8) === 0 ? [first, (first + 1) % subject.length] : [first]
      const asked = picked.map(index => ({ ...subject[index], cost }))
      const answer = await store.decide({ alternatives: [asked], shadow: [] })
      decisions++
      if (answer.charged !== 0) continue
      for (const [index, verdict] of answer.verdicts[0].entries()) {
        admissions.push(
          asked[index].number,
          verdict.chargedAtUs,
          cost,
          verdict.remaining,
          verdict.resetAfterUs,
        )
      }
    }
  }

  await Promise.all(Array.from({ length: inFlight }, (_, index) => ask(randomFrom(seed * 1000 + index))))
  return { decisions, admissions: Float64Array.from(admissions) }
}

/** Asks for each check in turn, `times` times over, and reports the answers. */
async function spend(store, { checks, times }) {
  const answers = []
  for (let round = 0; round < times; round++) {
    for (const check of checks) answers.push(await store.decide({ alternatives: [[check]], shadow: [] }))
  }
  return { answers, unixMs: Date.now() }
}

const JOBS = { saturate, spend }

process.once('message', async job => {
  const given = connect(job)
  given.on('error', () => {})
  const calls = []
  const warnings = []
  const options = {
    deadlineMs: DEADLINE_MS,
    onWarning: warning => warnings.push(warning.code),
    prefix: job.prefix,
  }
  const store = redisStore(job.recordCalls ? await recording(given, job, calls) : given, options)
  await store.ready()
  process.once('message', async () => {
    const result = await JOBS[job.job](store, job)
    process.send({ ...result, calls, warnings })
    await store.close()
    if (job.client === 'ioredis') given.disconnect()
    process.disconnect()
  })
  process.send('ready')
})

/** A connection that writes down what is sent. */
async function recording(given, { client }, calls) {
  if (client === 'node-redis') await given.connect()
  const run = (how, script, keys, args) =>
    client === 'ioredis'
      ? given[how.toLowerCase()](script, keys.length, ...keys, ...args)
      : given[how](script, { keys, arguments: args })
  return {
    evalsha: (sha, keys, args) => {
      calls.push([sha, keys, args])
      return run('evalSha', sha, keys, args)
    },
    eval: (text, keys, args) => run('eval', text, keys, args),
    close: () => (client === 'ioredis' ? given.disconnect() : given.destroy()),
  }
}
