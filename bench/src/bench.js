/**
 * Measures Headgate beside other limiters on this machine, and writes docs/reference/benchmarks.md.
 *
 *   npm run bench -- embedded       decisions in memory; 3 minutes
 *   npm run bench -- redis          decisions on Redis; 7 minutes
 *   npm run bench -- http           what a limiter costs Express, Fastify and Hono; 6 minutes
 *   npm run bench -- faults         a Redis that is frozen, killed, half-open and slow; 3 minutes
 *   npm run bench -- gateway        headgate serve beside a bare Node proxy and nginx; 4 minutes
 *   npm run bench -- instructions   instructions of redis-server a check; a minute, needs valgrind
 *   npm run bench -- all            one after the other
 *
 *   --quick      seconds instead of minutes; rough, writes nothing
 *   --only x,y   some rows of a bench, which an unknown name lists; writes nothing
 *   --noisy      does not wait for a quiet machine; writes nothing
 *   --strict     instructions: exit code 1 if a script costs more than 1.15 × its committed ratio to an empty one
 *
 * Waits up to five minutes until the load is below 0.7 and no other program takes more than 5 % of a core; otherwise it
 * says so and measures nothing. What was measured beside another program is measured again.
 */
import { parseArgs } from 'node:util'
import { helpIfAsked } from './harness/help.js'
import { settingOf, writeSection } from './harness/page.js'
import { Machine } from './harness/quiet.js'

/** @typedef {{ quick: boolean, only: readonly string[] | undefined, strict: boolean, machine: Machine, tell: (line: string) => void }} BenchOptions */
/** The text of each section that the bench writes, by the name of its markers. @typedef {Record<string, string>} Sections */
/** @typedef {{ rows: readonly string[], minutes: number, measure: (options: BenchOptions) => Promise<Sections>, keep?: () => void }} Bench */

/** @type {Readonly<Record<string, () => Promise<Bench>>>} */
const BENCHES = {
  embedded: () => import('./embedded.js'),
  redis: () => import('./redis.js'),
  http: () => import('./http.js'),
  faults: () => import('./faults.js'),
  gateway: () => import('./gateway.js'),
  instructions: () => import('./instructions.js'),
}
/** Counted, not timed: needs no quiet machine. */
const UNTIMED = 'instructions'

/** @param {string} line */
function tell(line) {
  const seconds = Math.round(performance.now() / 1000)
  process.stderr.write(`${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}  ${line}\n`)
}

function readOptions() {
  const flag = /** @type {const} */ ({ type: 'boolean', default: false })
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { quick: flag, noisy: flag, strict: flag, only: { type: 'string' } },
  })
  const [name = ''] = positionals
  const names = name === 'all' ? Object.keys(BENCHES) : [name]
  if (positionals.length !== 1 || names.some(each => !Object.hasOwn(BENCHES, each)))
    throw new Error(`expected one of ${Object.keys(BENCHES).join(', ')}, all; got '${positionals.join(' ')}'`)
  return { ...values, names, only: values.only?.split(',') }
}

async function main() {
  const { names, quick, noisy, strict, only } = readOptions()
  const machine = new Machine({ isNoisy: noisy, tell })
  const isWritten = !quick && !noisy && !strict && only === undefined
  let ourLoad = false
  for (const name of names) {
    const bench = await /** @type {() => Promise<Bench>} */ (BENCHES[name])()
    const unknown = only?.find(row => !bench.rows.includes(row))
    if (unknown !== undefined)
      throw new Error(`--only: expected some of ${bench.rows.join(', ')}; got '${unknown}'`)
    tell(`${name}${quick ? '' : `, about ${bench.minutes} min`}`)
    if (name !== UNTIMED) await machine.untilQuiet({ ourLoad })
    ourLoad = true
    const sections = await bench.measure({ quick, only, strict, machine, tell })
    const setting = await settingOf(name === UNTIMED ? undefined : machine)
    for (const [section, text] of Object.entries(sections)) {
      process.stdout.write(`\n${text}\n`)
      // A short table is for a page that has no room for more.
      const written = section === name ? `${setting}\n\n${text}` : text
      if (isWritten && !writeSection(section, written)) tell(`no page has markers for bench:${section}`)
    }
    process.stdout.write(`\n${setting}\n\n`)
    if (isWritten) bench.keep?.()
  }
}

helpIfAsked(import.meta.url)
try {
  await main()
} catch (error) {
  tell(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
