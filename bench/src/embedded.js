/**
 * Measures the embedded store beside its peers and a bare Map.
 *
 *   npm run bench:embedded              about eight minutes; writes bench/results and docs/reference/benchmarks.md
 *   npm run bench:embedded -- --quick   under a minute; rough, writes nothing
 *   npm run bench:embedded -- --strict  exit code 1 if a target was missed
 */
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { helpIfAsked } from './harness/help.js'
import { measureHeap, measureLogHeap } from './measure/heap.js'
import { IN_FLIGHT } from './measure/loops.js'
import { measureSpeed } from './measure/speed.js'
import { toMarkdown } from './report/markdown.js'
import { createProgress } from './report/progress.js'
import { LOG, toSpeedResult } from './report/results.js'
import { judge } from './report/targets.js'
import { writeResults } from './report/write.js'
import { WORKLOAD_IDS, WORKLOADS } from './workloads.js'

helpIfAsked(import.meta.url)

const FULL = { rounds: 15, scale: 1, heapKeys: 1_000_000 }
const QUICK = { rounds: 3, scale: 0.2, heapKeys: 125_000 }

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, strict: { type: 'boolean', default: false } },
})
const { rounds, scale, heapKeys } = options.quick ? QUICK : FULL
const progress = createProgress()

/** @type {import('./report/results.js').Results} */
const results = {
  setting: { node: process.versions.node, cores: availableParallelism(), rounds, heapKeys },
  speed: [],
  heap: [],
  logHeap: [],
}
for (const workload of WORKLOAD_IDS) await measure(workload, 1)
if (!options.quick) await measure('b', IN_FLIGHT)
progress.begin(`memory of ${heapKeys.toLocaleString('en')} keys`)
results.heap = [...(await measureHeap(heapKeys, progress.step))].map(([name, heap]) => ({ name, ...heap }))
results.logHeap = await measureLogHeap(LOG, heapKeys / 10, progress.step)
progress.end()

process.stdout.write(`${toMarkdown(results, '##')}\n\n`)
if (!options.quick) {
  await writeResults('embedded', {
    title: 'Embedded store',
    json: { ...results, targets: judge(results) },
    markdown: heading => toMarkdown(results, heading),
  })
}

const missed = judge(results).filter(target => !target.met)
process.stdout.write(
  missed.length === 0 ? 'Every target was met.\n' : `${missed.length} targets were missed.\n`,
)
if (options.strict && missed.length > 0) process.exitCode = 1

/** @param {import('./workloads.js').WorkloadId} workload @param {number} inFlight */
async function measure(workload, inFlight) {
  progress.begin(`(${workload}) ${WORKLOADS[workload].title}, ${inFlight} in flight`)
  const order = { workload, scale, rounds, inFlight: inFlight > 1 }
  results.speed.push(toSpeedResult(workload, inFlight, await measureSpeed(order, progress.step)))
}
