/**
 * A thousand users through the gateway on Redis for a minute, two thousand requests a second in all, open loop.
 *
 *   npm run proof -- load                          waits for a quiet machine; writes docs/reference/benchmarks.md
 *   npm run proof -- load --rate 10000 --gateways 2
 *   npm run proof -- load --seconds 5           with any option it waits for nothing and writes nothing
 *
 *   --seconds      2 to 3600, otherwise 60; measured after a warm-up
 *   --rate         requests a second in all: 20 to 50000, otherwise 2000 or as many as keep the connections open
 *   --users        20 to 10000, otherwise 1000
 *   --connections  20 to 20000, otherwise one for each user
 *   --gateways     processes that share the Redis: 1 to 16, otherwise 1
 *
 * Exit code 1 if a target was missed.
 */
import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { helpIfAsked } from '../harness/help.js'
import { formatTable, settingOf, thousands, writeSection } from '../harness/page.js'
import { Machine } from '../harness/quiet.js'
import { runLoad } from './run.js'

helpIfAsked(import.meta.url)

/** How long a connection may idle; the gateway closes it later than that. */
const USED_EVERY_SECONDS = 3.5
const RANGES = {
  seconds: [2, 3_600],
  rate: [20, 50_000],
  users: [20, 10_000],
  connections: [20, 20_000],
  gateways: [1, 16],
}

/** @returns {import('./run.js').Options} */
function readOptions() {
  const text = { type: /** @type {const} */ ('string') }
  const { values } = parseArgs({
    options: { seconds: text, rate: text, users: text, connections: text, gateways: text },
  })
  /** @param {keyof typeof RANGES} name @param {number} otherwise */
  const number = (name, otherwise) => {
    const value = Number(values[name] ?? otherwise)
    const [least = 0, most = 0] = RANGES[name]
    if (!Number.isInteger(value) || value < least || value > most)
      throw new Error(`--${name}: expected a whole number from ${least} to ${most}, got ${values[name]}`)
    return value
  }
  const users = number('users', 1_000)
  const connections = Math.max(users, number('connections', users))
  checkDescriptors(connections)
  return {
    seconds: number('seconds', 60),
    // A connection stays open only if it is used now and then.
    rate: number('rate', Math.max(2_000, Math.ceil(connections / USED_EVERY_SECONDS))),
    users,
    connections,
    gateways: number('gateways', 1),
  }
}

/** @param {number} connections */
function checkDescriptors(connections) {
  const allowed = Number(execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }))
  const needed = connections + 1_000
  if (allowed < needed)
    throw new Error(
      `${connections} connections need ${needed} open files; ulimit -n is ${allowed}: ulimit -n ${needed}`,
    )
}

/** @param {import('./run.js').Outcome} outcome */
function report({ options, limitPerSecond, abusers, figures, cores, generatorWasLate, verdicts }) {
  const { users, rate, connections, gateways, seconds } = options
  /** @param {string} name @param {import('./figures.js').Part} part */
  const row = (name, { requests, denied, latency }) => [
    name,
    thousands(requests),
    thousands(denied),
    ...[latency.p50Ms, latency.p90Ms, latency.p99Ms, latency.maxMs].map(value => value.toFixed(1)),
  ]
  const used = cores.map(({ name, cores: share }) => `${name} ${share.toFixed(2)}`).join(', ')
  return `${thousands(rate)} requests a second by ${thousands(users)} users on ${thousands(connections)} connections, ${abusers} of them at twice their limit of ${limitPerSecond} a second; gateways: ${gateways}; ${seconds} s.

${formatTable({
  head: ['', 'outcome', 'measured'],
  rows: verdicts.map(({ claim, measured, isMet }) => [claim, isMet ? 'met' : 'missed', measured]),
})}

${formatTable({
  head: ['', 'requests', 'denied', 'p50, ms', 'p90', 'p99', 'slowest'],
  rows: [row('limits on', figures.on), row('limits off', figures.off)],
})}

The limits add ${figures.overheadP50Ms.toFixed(2)} ms to the p50 and ${figures.overheadP99Ms.toFixed(2)} ms to the p99. Cores in use: ${used}. The generator sent 99 % within ${figures.late.p99Ms.toFixed(1)} ms of their time${generatorWasLate ? ': **it was itself the bottleneck**' : ''}.`
}

async function main() {
  const options = readOptions()
  const isKept = process.argv.length === 2
  const tell = (/** @type {string} */ line) => void process.stderr.write(`${line}\n`)
  const machine = new Machine({ isNoisy: !isKept, tell })
  if (isKept) await machine.untilQuiet()
  const outcome = await machine.cell('load', () => runLoad(options, tell))
  const text = report(outcome)
  process.stdout.write(`${text}\n`)
  if (isKept) writeSection('load', `${await settingOf(machine)}\n\n${text}`)
  return outcome.verdicts.every(({ isMet }) => isMet) ? 0 : 1
}

try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
}
