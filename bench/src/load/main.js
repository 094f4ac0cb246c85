/**
 * `npm run load`: a thousand users through the gateway for a minute, two thousand requests a second in all.
 *
 *   npm run load                          writes bench/results/load.html and docs/reference/load.md
 *   npm run load -- --rate 10000 --gateways 2
 *   npm run load -- --connections 10000
 *   npm run load -- --seconds 5           a first look: prints, and writes only the report that --html names
 *
 *   --seconds      2 to 3600, otherwise 60; measured after a warm-up
 *   --rate         requests a second in all: 20 to 50000, otherwise 2000 or as many as keep the connections open
 *   --users        20 to 10000, otherwise 1000
 *   --connections  20 to 20000, otherwise one for each user
 *   --gateways     processes that share the Redis: 1 to 16, otherwise 1
 *   --html         the file that the report is written to
 *
 * Exit code 1 if a target was missed.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { availableParallelism, loadavg } from 'node:os'
import { helpIfAsked } from '../harness/help.js'
import { redisVersion } from '../redis/server.js'
import { createProgress } from '../report/progress.js'
import { htmlReport } from './html.js'
import { loadPage } from './markdown.js'
import { readOptions } from './options.js'
import { runLoad } from './run.js'

helpIfAsked(import.meta.url)

/** A shorter run says too little to be kept. */
const KEPT_FROM_SECONDS = 60
const RESULTS = new URL('../../results/', import.meta.url)
const PAGE = new URL('../../../docs/reference/load.md', import.meta.url)

function settingWords() {
  const load = loadavg()[0]?.toFixed(1)
  return `Node ${process.versions.node}, Redis ${redisVersion()}, ${availableParallelism()} cores for everything together, load average before the run ${load}.`
}

/** @param {import('./run.js').Outcome} outcome */
function print({ figures, cpu, verdicts, generatorWasLate }) {
  const { on, off, late } = figures
  const line = (
    /** @type {string} */ name,
    /** @type {import('./figures.js').Part} */ { requests, latency },
  ) =>
    `${name.padEnd(12)}${String(requests).padStart(9)} requests   p50 ${latency.p50Ms.toFixed(1)} ms   p90 ${latency.p90Ms.toFixed(1)} ms   p99 ${latency.p99Ms.toFixed(1)} ms   slowest ${latency.maxMs.toFixed(1)} ms`
  const cores = Object.entries(meanOf(cpu)).map(([name, used]) => `${name} ${used.toFixed(2)}`)
  const lines = [
    line('limits on', on),
    line('limits off', off),
    `cores in use: ${cores.join(', ')}`,
    `the generator sent 99 % within ${late.p99Ms.toFixed(1)} ms of their time${generatorWasLate ? ': it was itself the bottleneck' : ''}`,
    '',
    ...verdicts.map(({ claim, measured, isMet }) => `${isMet ? 'met   ' : 'MISSED'}  ${claim}: ${measured}`),
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
}

/** @param {readonly import('./run.js').Cpu[]} cpu @returns {import('./run.js').Cpu} */
function meanOf(cpu) {
  const mean = (/** @type {keyof import('./run.js').Cpu} */ who) =>
    cpu.reduce((sum, second) => sum + second[who], 0) / cpu.length
  return {
    gateway: mean('gateway'),
    redis: mean('redis'),
    upstream: mean('upstream'),
    generator: mean('generator'),
  }
}

/** Saves the run beside those of other kinds, and writes the page of all of them. @param {import('./run.js').Outcome} outcome @param {string} setting */
async function keep(outcome, setting) {
  const { seconds: _, ...figures } = outcome.figures
  const { options, limitPerSecond, abusers, generatorWasLate, verdicts } = outcome
  /** @type {Record<string, import('./markdown.js').Kept>} */
  const runs = JSON.parse(await readFile(new URL('load.json', RESULTS), 'utf8').catch(() => '{}'))
  const kind = `${String(options.connections).padStart(5, '0')} connections, ${String(options.rate).padStart(5, '0')} a second`
  runs[kind] = {
    setting,
    options: { ...options, html: '' },
    limitPerSecond,
    abusers,
    generatorWasLate,
    verdicts,
    figures,
    cpu: meanOf(outcome.cpu),
  }
  await writeFile(new URL('load.json', RESULTS), `${JSON.stringify(runs, null, 2)}\n`)
  const inOrder = Object.entries(runs).sort(([one], [other]) => one.localeCompare(other))
  await writeFile(PAGE, loadPage(inOrder.map(([, run]) => run)))
}

async function main() {
  const options = readOptions(process.argv.slice(2))
  const setting = settingWords()
  const progress = createProgress()
  progress.begin(`${options.users} users, ${options.rate} requests a second for ${options.seconds} s`)
  const outcome = await runLoad(options, progress.step)
  progress.end()
  print(outcome)
  const isKept = options.seconds >= KEPT_FROM_SECONDS
  await mkdir(RESULTS, { recursive: true })
  const html = options.html || (isKept ? new URL('load.html', RESULTS) : '')
  if (html) await writeFile(html, htmlReport(outcome, setting))
  if (isKept) await keep(outcome, setting)
  return outcome.verdicts.every(({ isMet }) => isMet) ? 0 : 1
}

try {
  process.exitCode = await main()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
}
