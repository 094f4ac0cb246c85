/**
 * Keeps the gateway under traffic by changing callers, with a fault of Redis every 30 s, and reports what grows.
 *
 *   npm run proof -- soak                   an hour
 *   npm run proof -- soak --minutes 480  a night: from 0.1 to 1440
 *
 * From an hour on it waits for a quiet machine and writes docs/reference/benchmarks.md; --noisy does neither. Exit code 1 if a target was missed.
 */
import { parseArgs } from 'node:util'
import { helpIfAsked } from '../harness/help.js'
import { formatTable, settingOf, thousands, writeSection } from '../harness/page.js'
import { Machine } from '../harness/quiet.js'
import { soak } from './rounds.js'
import { verdictsOf } from './verdicts.js'

helpIfAsked(import.meta.url)

const ROUND_MS = 30_000
const LEAST_ROUND_MS = 10_000
/** A shorter run cannot tell a megabyte an hour from nothing. */
const KEPT_FROM_MINUTES = 60

function readOptions() {
  const { values } = parseArgs({
    options: { minutes: { type: 'string', default: '60' }, noisy: { type: 'boolean', default: false } },
  })
  const minutes = Number(values.minutes)
  if (!(minutes >= 0.1 && minutes <= 24 * 60))
    throw new Error(`--minutes: expected a number from 0.1 to 1440, got ${values.minutes}`)
  return { minutes, isKept: minutes >= KEPT_FROM_MINUTES && !values.noisy }
}

/** @param {readonly import('./rounds.js').Round[]} rounds @param {number} minutes */
function report(rounds, minutes) {
  const sum = (/** @type {readonly number[]} */ values) => values.reduce((one, other) => one + other, 0)
  const requests = (/** @type {readonly import('./rounds.js').Round[]} */ some) =>
    sum(some.map(({ allowed, denied, lost }) => allowed + denied + lost))
  const faults = [...new Set(rounds.map(({ fault }) => fault))]
  return `${minutes} minutes, ${thousands(requests(rounds))} requests through one gateway.

${formatTable({
  head: ['', 'outcome', 'measured'],
  rows: verdictsOf(rounds).map(({ claim, measured, outcome }) => [claim, outcome, measured]),
})}

${formatTable({
  head: ['Redis', 'times', 'requests', 'lost', 'longest delay of the event loop, ms'],
  rows: faults.map(fault => {
    const some = rounds.filter(round => round.fault === fault)
    return [
      fault,
      String(some.length),
      thousands(requests(some)),
      String(sum(some.map(({ lost }) => lost))),
      Math.max(...some.map(({ loopWorstMs }) => loopWorstMs)).toFixed(0),
    ]
  }),
})}`
}

async function main() {
  const { minutes, isKept } = readOptions()
  const machine = new Machine({ isNoisy: !isKept, tell: line => void process.stderr.write(`${line}\n`) })
  if (isKept) await machine.untilQuiet()
  const roundMs = Math.max(LEAST_ROUND_MS, Math.min(ROUND_MS, minutes * 30_000))
  const count = Math.max(1, Math.round((minutes * 60_000) / roundMs))
  const rounds = await soak({ rounds: count, roundMs }, (round, index) => {
    const { fault, allowed, denied, lost, residentBytes, heapBytes, descriptors, loopP99Ms } = round
    process.stdout.write(
      `${index + 1}/${count}  Redis ${fault}: ${allowed} allowed, ${denied} denied, ${lost} lost; ${(residentBytes / 1e6).toFixed(1)} MB, heap ${(heapBytes / 1e6).toFixed(1)} MB, ${descriptors} descriptors, event loop p99 ${loopP99Ms.toFixed(1)} ms\n`,
    )
  })
  const text = report(rounds, minutes)
  process.stdout.write(`\n${text}\n`)
  if (isKept) writeSection('soak', `${await settingOf(machine)} ${text}`)
  return verdictsOf(rounds).some(({ outcome }) => outcome === 'missed') ? 1 : 0
}

try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
}
