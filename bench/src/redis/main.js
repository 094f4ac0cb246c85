/**
 * Measures limits on its own Redis, next to the peers, a bare INCR and an empty script.
 *
 *   npm run bench:redis                     about ten minutes; writes bench/results, the chart and the docs
 *   npm run bench:redis -- --quick          about a minute and a half; rough, writes nothing
 *   npm run bench:redis -- --only a,memory  some parts (a a1s a1h b c d e log memory arrivals scaling admissions); writes nothing
 *   npm run bench:redis -- --strict         exit code 1 if a target was missed
 */
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { helpIfAsked } from '../harness/help.js'
import { createProgress } from '../report/progress.js'
import { writeResults } from '../report/write.js'
import { measureArrivals } from './arrivals.js'
import { measureCeiling } from './ceiling.js'
import { CONTESTANTS, idOf } from './contestants/contestants.js'
import { leasesAreKnown } from './contestants/lease.js'
import { measureMemory } from './memory.js'
import { countAdmissions } from './over-admission.js'
import { speedChart } from './report/chart.js'
import { toMarkdown } from './report/markdown.js'
import { toSpeed } from './report/results.js'
import { judge, OURS } from './report/targets.js'
import { Field, runRounds } from './rounds.js'
import { measureScaling } from './scaling.js'
import { redisVersion, startServer } from './server.js'
import { TITLES, WORKLOAD_IDS } from './workloads.js'

helpIfAsked(import.meta.url)

/** Shows every client with 512 in flight; with fewer, only the fastest of each library. */
const FULL = {
  fill: true,
  levels: [
    { inFlight: 512, rounds: 3, seconds: 0.2, warmUpRequests: 10_000, quickestOnly: false },
    { inFlight: 64, rounds: 3, seconds: 0.1, warmUpRequests: 3_000, quickestOnly: true },
    { inFlight: 1, rounds: 3, seconds: 0.1, warmUpRequests: 1_000, quickestOnly: true },
  ],
  ceilings: 3,
  arrivals: { rounds: 3, seconds: 0.5 },
  scaling: { rounds: 3, seconds: 0.5 },
}
const QUICK = {
  fill: false,
  levels: [{ inFlight: 512, rounds: 3, seconds: 0.1, warmUpRequests: 5_000, quickestOnly: true }],
  ceilings: 1,
  arrivals: { rounds: 1, seconds: 0.3 },
  scaling: { rounds: 1, seconds: 0.3 },
}
const PARTS = [...WORKLOAD_IDS, 'memory', 'arrivals', 'scaling', 'admissions']

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    strict: { type: 'boolean', default: false },
    only: { type: 'string', default: PARTS.join(',') },
  },
})
const parts = options.only.split(',')
const unknown = parts.find(part => !PARTS.includes(part))
if (unknown !== undefined) throw new Error(`--only: expected any of ${PARTS.join(', ')}; got '${unknown}'`)
const plan = options.quick ? QUICK : FULL
const progress = createProgress()
const tell = progress.step

const server = await startServer()
const field = new Field(server)

/** @type {import('./report/results.js').Results} */
const results = {
  setting: {
    node: process.versions.node,
    redis: redisVersion(),
    cores: availableParallelism(),
    rounds: plan.levels[0]?.rounds ?? 0,
    leases: leasesAreKnown(),
    load: loadavg()[0] ?? 0,
  },
  speed: [],
  ceiling: { counter: [], bucket: [] },
  memory: [],
  arrivals: [],
  scaling: [],
  admissions: [],
}

try {
  await part('memory', 'memory in Redis', async () => {
    results.memory = await measureMemory(server, field, tell)
  })
  for (const workload of WORKLOAD_IDS) {
    if (!parts.includes(workload)) continue
    if (workload === 'a' && plan.fill) await fillAll()
    for (const level of plan.levels) {
      progress.begin(`(${workload}) ${TITLES[workload]}, ${level.inFlight} in flight`)
      results.speed.push(
        toSpeed(workload, level.inFlight, await runRounds(field, { workload, ...level }, tell)),
      )
    }
    if (workload === 'a') await measureCeilings()
    await server.empty()
  }
  await part('arrivals', 'requests at random moments', async () => {
    results.arrivals = await measureArrivals(field, plan.arrivals, tell)
  })
  await field.stop()
  await part('admissions', 'admissions of a hot key', async () => {
    for (const id of Object.values(OURS)) results.admissions.push(await countAdmissions(server.url, id))
  })
  await part('scaling', 'several processes, several primaries', async () => {
    results.scaling = await measureScaling(server, plan.scaling, tell)
  })
} finally {
  await field.stop()
  await server.stop()
}
progress.end()

process.stdout.write(`${toMarkdown(results, '##')}\n\n`)
const targets = judge(results)
if (!options.quick && parts.length === PARTS.length) {
  await writeResults('redis', {
    title: 'Redis',
    json: { ...results, targets },
    markdown: heading => toMarkdown(results, heading),
    charts: { 'redis.svg': speedChart(results) },
  })
}
const missed = targets.filter(target => !target.met)
process.stdout.write(
  missed.length === 0 ? 'Every target was met.\n' : `${missed.length} targets were missed.\n`,
)
if (options.strict && missed.length > 0) process.exitCode = 1

/** @param {string} name @param {string} title @param {() => Promise<void>} measure */
async function part(name, title, measure) {
  if (!parts.includes(name)) return
  progress.begin(title)
  await measure()
}

/** In (a) every key asks once before the clock starts. */
async function fillAll() {
  progress.begin('every key of (a) once, for each contestant')
  for (const entry of CONTESTANTS) {
    // A scheduler would take a minute and a half for that, so it is left out.
    if (!entry.workloads.includes('a') || entry.name === 'bottleneck') continue
    tell(idOf(entry))
    await field.fill(idOf(entry))
  }
}

async function measureCeilings() {
  progress.begin('the script alone, in redis-benchmark')
  for (let round = 0; round < plan.ceilings; round++)
    for (const kind of /** @type {const} */ (['counter', 'bucket']))
      results.ceiling[kind].push(await measureCeiling(server, kind))
}
