// One process of a fleet: does the job its parent sends, with the built library, and reports back. Limits come as
// text, so that parent and worker cannot disagree about them.
import { Cluster, Redis } from 'ioredis'
import { createClient, createCluster } from 'redis'

// The test proves counts, not speed: a busy machine must not cause an unknown outcome.
const DEADLINE_MS = 20_000

function connect({ client, ports, cluster }) {
  const urls = ports.map(port => `redis://127.0.0.1:${port}`)
  if (client === 'ioredis') return cluster ? new Cluster(urls) : new Redis(urls[0])
  return cluster ? createCluster({ rootNodes: urls.map(url => ({ url })) }) : createClient({ url: urls[0] })
}

const PAUSE_MS = 5

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

/** Asks as fast as it can for `durationMs` and records every verdict with the store's time. */
async function saturate({ ask: decide }, { checks, clocks, costs, inFlight, durationMs, seed }) {
  const verdicts = []
  let decisions = 0
  const endsAt = performance.now() + durationMs

  async function ask(random) {
    while (performance.now() < endsAt) {
      const cost = costs[random(costs.length)]
      const key = random(checks.length)
      const subject = checks[key]
      const first = random(subject.length)
      // One question in eight is about two limits at once: charged together or not at all.
      const picked = random(8) === 0 ? [first, (first + 1) % subject.length] : [first]
      const asked = picked.map(index => ({ ...subject[index], cost }))
      // The shadow check is always charged, and so tells the time of the call, even of a denied one.
      const answer = await decide({ alternatives: [asked], shadow: [clocks[key]] })
      const nowUs = answer.shadow[0].chargedAtUs
      decisions++
      for (const [
        index,
        { chargedAtUs, retryAfterUs, remaining, resetAfterUs },
      ] of answer.verdicts[0].entries()) {
        verdicts.push(
          asked[index].number,
          nowUs,
          cost,
          chargedAtUs ?? -1,
          retryAfterUs,
          remaining,
          resetAfterUs,
        )
      }
    }
  }

  await Promise.all(Array.from({ length: inFlight }, (_, index) => ask(randomFrom(seed * 1000 + index))))
  return { decisions, verdicts: Float64Array.from(verdicts) }
}

/** Asks for each check in turn, `times` times over, and reports the answers. */
async function spend({ ask }, { checks, times }) {
  const answers = []
  for (let round = 0; round < times; round++) {
    for (const check of checks) answers.push(await ask({ alternatives: [[check]], shadow: [] }))
  }
  return { answers, unixMs: Date.now() }
}

/**
 * Asks for every check in turn for `durationMs`, and records each admission: the check, when the answer arrived and
 * how long it took, on the clock all processes of a machine share.
 */
async function lease({ ask: decide, store }, { checks, inFlight, durationMs }) {
  const admitted = []
  let asked = 0
  let leased = 0
  const nowUs = () => Number(process.hrtime.bigint() / 1000n)
  const endsAtUs = nowUs() + durationMs * 1000

  async function ask() {
    while (nowUs() < endsAtUs) {
      for (const [number, check] of checks.entries()) {
        const beganAtUs = nowUs()
        const answer = await decide({ alternatives: [[check]], shadow: [] })
        const atUs = nowUs()
        asked++
        if (answer.leased) leased++
        if (answer.charged === 0) admitted.push(number, atUs, atUs - beganAtUs)
      }
      // Far more than the limits allow, but not all a machine can do: eight processes that get no time to run ask
      // nothing.
      await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    }
  }

  await Promise.all(Array.from({ length: inFlight }, ask))
  await store.close()
  return { asked, leased, admitted: Float64Array.from(admitted) }
}

const JOBS = { saturate, spend, lease }

/** Finds the algorithms of the limits in a job, those of the previous version for a library that is one. */
async function read(text) {
  const { library } = JSON.parse(text)
  const { allAlgorithms } = await import(library ?? '../../dist/algorithms/all-algorithms.js')
  const isLimit = value => typeof value === 'object' && value !== null && 'algorithm' in value
  return JSON.parse(text, (_, value) =>
    isLimit(value) ? { ...value, algorithm: allAlgorithms.get(value.algorithm) } : value,
  )
}

/** Connects, and returns the work to do once all workers are connected. */
async function prepare(job) {
  const { redisStore } = await import(job.library ?? '../../dist/redis.js')
  const { askStore } = await import(job.library ?? '../../dist/store/ask-store.js')
  const given = connect(job)
  given.on('error', () => {})
  const calls = []
  const warnings = []
  const onWarning = warning => warnings.push(warning.code)
  const client = job.recordCalls ? await recording(given, job, calls) : given
  // The test is about what Redis decides, so every question must reach it.
  const cached = { denyCache: job.job === 'lease', processes: job.processes ?? 1 }
  const store = redisStore(client, { deadlineMs: DEADLINE_MS, onStoreFailure: 'throw', onWarning, ...cached })
  await store.ready()
  const ask = question => askStore(store, question)
  return async () => ({ ...(await JOBS[job.job]({ ask, store }, job)), calls, warnings })
}

// First the job, then the signal to start. The listener keeps the process alive until its parent ends it: otherwise
// it could be gone before its report is read.
let work = null
process.on('message', async message => {
  if (work !== null) return process.send(await work())
  work = await prepare(await read(message))
  process.send('ready')
})
process.on('disconnect', () => process.exit())

/** Wraps a connection so that it records what is sent. */
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
    eval: (text, keys, args) => {
      calls.push([text, keys, args])
      return run('eval', text, keys, args)
    },
  }
}
