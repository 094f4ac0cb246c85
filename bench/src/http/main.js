/**
 * Measures what a limiter costs a web server. Loads Express, Fastify, Hono, Koa and node:http bare, with their usual
 * limiter, and with ours in each header style.
 *
 *   npm run bench:http                        about eight minutes; writes bench/results, the chart and the docs
 *   npm run bench:http -- --quick             a minute; rough, writes nothing
 *   npm run bench:http -- --quick --only koa  the frameworks whose name starts with koa
 *   npm run bench:http -- --strict   exit code 1 if a target was missed
 */
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { helpIfAsked } from '../harness/help.js'
import { redisVersion, startServer } from '../redis/server.js'
import { createProgress } from '../report/progress.js'
import { writeResults } from '../report/write.js'
import { httpChart } from './chart.js'
import { toMarkdown } from './markdown.js'
import { judge, toRows } from './results.js'
import { loadInRounds } from './rounds.js'

helpIfAsked(import.meta.url)

const FULL = { rounds: 5, seconds: 0.5, warmUpRequests: 20_000 }
const QUICK = { rounds: 1, seconds: 0.5, warmUpRequests: 5_000 }

const load = loadavg()[0] ?? 0
const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    strict: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  },
})
const plan = options.quick ? QUICK : FULL
const progress = createProgress()
progress.begin('web servers')
const server = await startServer()
/** @type {import('./results.js').Row[]} */
let rows
try {
  rows = toRows(await loadInRounds(server.url, { ...plan, only: options.only }, progress.step))
} finally {
  await server.stop()
}
progress.end()

const { rounds } = plan
const setting = {
  node: process.versions.node,
  redis: redisVersion(),
  cores: availableParallelism(),
  rounds,
  load,
}
const results = { setting, rows }
process.stdout.write(`${toMarkdown(results, '##')}\n\n`)
const targets = judge(rows)
if (!options.quick && options.only === '') {
  await writeResults('http', {
    title: 'HTTP',
    json: { ...results, targets },
    markdown: heading => toMarkdown(results, heading),
    charts: { 'http.svg': httpChart(rows) },
  })
}
const missed = targets.filter(target => !target.met)
process.stdout.write(
  missed.length === 0 ? 'Every target was met.\n' : `${missed.length} targets were missed.\n`,
)
if (options.strict && missed.length > 0) process.exitCode = 1
