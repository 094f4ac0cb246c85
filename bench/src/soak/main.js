/**
 * `npm run soak`: keeps the gateway under traffic by changing callers, with a Redis fault every 30 s, and reports what grows.
 *
 *   npm run soak                   an hour
 *   npm run soak -- --minutes 480  a night: from 0.1 to 1440
 *
 * Writes docs/reference/soak.md from five minutes on. Exit code 1 if a target was missed.
 */
import { writeFile } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { helpIfAsked } from '../harness/help.js'
import { redisVersion } from '../redis/server.js'
import { formatTable } from '../report/table.js'
import { soak } from './rounds.js'
import { verdictsOf } from './verdicts.js'

helpIfAsked(import.meta.url)

const PAGE = new URL('../../../docs/reference/soak.md', import.meta.url)
const ROUND_MS = 30_000
const LEAST_ROUND_MS = 10_000
const WRITTEN_FROM_MINUTES = 5

function readMinutes() {
  const { values } = parseArgs({ options: { minutes: { type: 'string', default: '60' } } })
  const minutes = Number(values.minutes)
  if (!(minutes >= 0.1 && minutes <= 24 * 60))
    throw new Error(`--minutes: expected a number from 0.1 to 1440, got ${values.minutes}`)
  return minutes
}

/** @param {readonly import('./rounds.js').Round[]} rounds @param {number} minutes @param {string} load Before the run. */
function page(rounds, minutes, load) {
  const faults = [...new Set(rounds.map(({ fault }) => fault))]
  const requests = rounds.reduce((sum, { allowed, refused, lost }) => sum + allowed + refused + lost, 0)
  const of = (/** @type {string} */ fault) => rounds.filter(round => round.fault === fault)
  return `# Soak

Written by \`npm run soak\`. **This run lasted ${minutes} minutes**: ${requests.toLocaleString('en')} requests through one gateway, by callers who come back every
five minutes, with a fault of Redis every ${ROUND_MS / 1000} s. Node ${process.versions.node}, Redis ${redisVersion()}, ${availableParallelism()} cores for everything together, load average before the run ${load}.
Memory in RAM is the least of each round, the heap what a full collection leaves; slopes are taken after the first third or ten minutes, with their 95 % interval. A run of less than an hour
cannot tell a megabyte an hour from nothing, and then says so. V8 takes its young generation and gives it back in steps of 32 MB, which blurs the slope of memory in RAM: a leak
shows in the heap.

${formatTable(
  ['', 'outcome', 'measured'],
  verdictsOf(rounds).map(({ claim, measured, outcome }) => [claim, outcome, measured]),
)}

${formatTable(
  ['fault', 'times', 'requests', 'lost', 'event loop late at worst, ms'],
  faults.map(fault => [
    fault,
    String(of(fault).length),
    of(fault)
      .reduce((sum, { allowed, refused, lost }) => sum + allowed + refused + lost, 0)
      .toLocaleString('en'),
    String(of(fault).reduce((sum, { lost }) => sum + lost, 0)),
    Math.max(...of(fault).map(({ loopWorstMs }) => loopWorstMs)).toFixed(0),
  ]),
)}
`
}

async function main() {
  const minutes = readMinutes()
  const load = loadavg()[0]?.toFixed(1) ?? ''
  const roundMs = Math.max(LEAST_ROUND_MS, Math.min(ROUND_MS, minutes * 30_000))
  const count = Math.max(1, Math.round((minutes * 60_000) / roundMs))
  const rounds = await soak({ rounds: count, roundMs }, (round, index) => {
    const { fault, allowed, refused, lost, residentBytes, heapBytes, descriptors, loopP99Ms } = round
    process.stdout.write(
      `${index + 1}/${count}  Redis ${fault}: ${allowed} let through, ${refused} refused, ${lost} lost; ${(residentBytes / 1e6).toFixed(1)} MB, heap ${(heapBytes / 1e6).toFixed(1)} MB, ${descriptors} descriptors, loop p99 ${loopP99Ms.toFixed(1)} ms\n`,
    )
  })
  const verdicts = verdictsOf(rounds)
  for (const { claim, measured, outcome } of verdicts)
    process.stdout.write(`${outcome}: ${claim}: ${measured}\n`)
  if (minutes >= WRITTEN_FROM_MINUTES) await writeFile(PAGE, page(rounds, minutes, load))
  return verdicts.some(({ outcome }) => outcome === 'missed') ? 1 : 0
}

try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
}
