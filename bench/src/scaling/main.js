/**
 * `npm run bench:scaling`: throughput over processes and primaries, a hot key with and without leases, and a fleet of a thousand
 * processes in virtual time.
 *
 *   npm run bench:scaling              about fifteen minutes; writes docs/reference/scaling.md
 *   npm run bench:scaling -- --quick   a minute; rough, prints only, unless --write says otherwise
 *   npm run bench:scaling -- --only simulation --processes 200
 *
 * Exit code 1 if a simulated fleet admitted more than its bound.
 */
import { writeFile } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { helpIfAsked } from '../harness/help.js'
import { HEADGATE, measureCluster, measureTarget } from '../redis/scaling.js'
import { redisVersion, startServer } from '../redis/server.js'
import { createProgress } from '../report/progress.js'
import { scalingPage } from './markdown.js'
import { simulateAll } from './simulate.js'

helpIfAsked(import.meta.url)

const PAGE = new URL('../../../docs/reference/scaling.md', import.meta.url)
const PRIMARIES = [1, 2, 3]

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    processes: { type: 'string' },
  },
})
if (!['', 'throughput', 'simulation'].includes(options.only))
  throw new Error(`--only: expected throughput or simulation; got '${options.only}'`)
const order = options.quick ? { rounds: 1, seconds: 0.5 } : { rounds: 5, seconds: 2 }
const processes = Number(options.processes ?? (options.quick ? 50 : 1_000))
if (!Number.isInteger(processes) || processes < 3 || processes > 10_000)
  throw new Error(`--processes: expected a whole number from 3 to 10000; got '${options.processes}'`)
/** A process leases a key it asks for often: so much traffic it takes for all of them to. */
const size = { processes, limit: 100 * processes }
const progress = createProgress()

async function throughput() {
  const primaries = []
  for (const count of PRIMARIES) {
    progress.begin(`a cluster of ${count}`)
    primaries.push(...(await measureCluster(count, order, progress.step)))
  }
  const server = await startServer()
  const { url, cpuSeconds } = server
  const target = { contestant: HEADGATE, url, cpuSeconds, primaries: 1, cluster: false }
  try {
    progress.begin('one server')
    primaries.unshift(...(await measureTarget(target, order, progress.step)))
    progress.begin('a hot key')
    const hot = await measureTarget({ ...target, workload: 'plain' }, order, progress.step)
    const leased = await measureTarget({ ...target, workload: 'd' }, order, progress.step)
    return { primaries, hot, leased }
  } finally {
    await server.stop()
  }
}

async function simulation() {
  progress.begin(`${size.processes} processes in virtual time`)
  return simulateAll(size, progress.step)
}

const setting = `Node ${process.versions.node}, Redis ${redisVersion()}, ${availableParallelism()} cores, load average before the run ${loadavg()[0]?.toFixed(1)}.`
const measured = options.only === 'simulation' ? { primaries: [], hot: [], leased: [] } : await throughput()
const fleet = options.only === 'throughput' ? null : await simulation()
progress.end()
const page = scalingPage({ setting, order, ...measured, fleet, processes: size.processes })
process.stdout.write(page)
if (options.write || (options.only === '' && !options.quick)) await writeFile(PAGE, page)
process.exitCode = fleet?.some(({ most, bound }) => most > bound) ? 1 : 0
