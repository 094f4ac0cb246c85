// Deterministic simulation: the real limiter and store over a simulated Redis and network, in virtual time.
//   npm run proof -- simulation --seeds=10000          seeds 1 to 10,000 in all modes (default 1,000)
//   npm run proof -- simulation --seeds=500 --from=7   seeds 7 to 506
//   npm run proof -- simulation --seed=42              one seed, with its whole history; --mode=safety, liveness or outage for one
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'

const MODES = ['safety', 'liveness', 'outage']
const given = Object.fromEntries(process.argv.slice(2).map(readArgument))
const modes = given.mode === undefined ? MODES : [given.mode]
if (!modes.every(mode => MODES.includes(mode)))
  stop(`--mode: expected safety, liveness or outage; got ${given.mode}`)
const one = given.seed === undefined ? null : wholeNumber('seed')
const from = one ?? (given.from === undefined ? 1 : wholeNumber('from'))
const seeds = one === null ? (given.seeds === undefined ? 1_000 : wholeNumber('seeds')) : 1

const { simulate } = await loadSimulation()
const totals = {}
let failed = 0
for (let seed = from; seed < from + seeds; seed++) {
  for (const mode of modes) {
    const run = await simulate(seed, mode, { recorded: one !== null })
    if (one !== null) console.log(`--- seed ${seed}, ${mode}\n${run.history}\n`)
    for (const [name, count] of Object.entries(run.tally)) totals[name] = (totals[name] ?? 0) + count
    for (const problem of run.problems) console.log(`seed ${seed} ${mode}: ${problem}`)
    if (run.problems.length > 0) failed++
  }
}
console.log(JSON.stringify(totals))
console.log(`${seeds} seeds in ${modes.join(' and ')} mode: ${failed} runs failed`)
process.exitCode = failed > 0 ? 1 : 0

/** The simulation is TypeScript, which not every supported Node version runs by itself. */
async function loadSimulation() {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-simulation-'))
  try {
    const outfile = join(folder, 'simulate.mjs')
    const entry = fileURLToPath(new URL('./simulate.ts', import.meta.url))
    await build({ entryPoints: [entry], bundle: true, platform: 'node', format: 'esm', outfile })
    return await import(pathToFileURL(outfile).href)
  } finally {
    await rm(folder, { recursive: true })
  }
}

function readArgument(argument) {
  const found = /^--(seeds|seed|from|mode)=(.+)$/.exec(argument)
  if (found === null) stop(`expected --seeds=, --from=, --seed= or --mode=; got ${argument}`)
  return [found[1], found[2]]
}

function wholeNumber(name) {
  const value = Number(given[name])
  if (!Number.isInteger(value) || value < 1)
    stop(`--${name}: expected a whole number from 1; got ${given[name]}`)
  return value
}

function stop(message) {
  console.error(message)
  process.exit(2)
}
