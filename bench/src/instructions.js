/**
 * Counts what a check costs redis-server in instructions, under callgrind: no clock, so no noise of the machine.
 * The library sends its checks through its public API, so whatever scripts it has are counted.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { formatTable, readResults, thousands, writeResults } from './harness/page.js'
import { openClient, startRedis } from './harness/redis-server.js'
import { LIMITERS, OURS } from './redis-limiters.js'

/** @typedef {{ first: number, again: number }} Counts Instructions of a check of a new key, and of one that Redis knows. */
/** @typedef {{ script: string, inCall: number, counts: Counts }} Count `inCall` checks at once. */

/** Windows so long that none ends during the run. */
const HOUR = { limit: 1_000, windowSeconds: 3_600 }
const DAY = { limit: 10_000, windowSeconds: 86_400 }
const WEEK = { limit: 50_000, windowSeconds: 604_800 }
const MONTH = { limit: 100_000, windowSeconds: 2_592_000 }

/** The checks a call takes: one, and as many as the library sends at once where that many wait. */
const ROWS = [
  { script: 'INCR', rules: [HOUR], calls: [1] },
  { script: 'empty script', rules: [HOUR], calls: [1] },
  { script: 'rate-limit-redis', rules: [HOUR], calls: [1] },
  { script: 'rate-limiter-flexible', rules: [HOUR], calls: [1] },
  { script: 'async-ratelimiter', rules: [{ ...HOUR, limit: 100 }], calls: [1] },
  { script: 'counter', rules: [HOUR], calls: [1, 64] },
  { script: 'quota', rules: [MONTH], calls: [1, 64] },
  { script: 'bucket', rules: [HOUR], calls: [1, 64] },
  { script: 'log', rules: [{ ...HOUR, limit: 100 }], calls: [1, 64] },
  { script: 'four limits', rules: [HOUR, DAY, WEEK, MONTH], calls: [1, 16] },
]
const EMPTY = 'empty script'

/** What a script may cost more than the committed ratio to an empty script. */
const TOLERANCE = 1.15

export const minutes = 1
export const rows = ROWS.map(({ script }) => script)
/** @type {Count[]} */
let counted = []

/** @param {import('./bench.js').BenchOptions} options @returns {Promise<import('./bench.js').Sections>} */
export async function measure({ strict, ...options }) {
  counted = await countInstructions(options)
  if (strict) {
    const dearer = dearerThanCommitted(counted, readResults('instructions'))
    if (dearer.length > 0) throw new Error(dearer.join('\n'))
  }
  return { instructions: instructionsTable(counted) }
}

/** Keeps the ratios that later runs are compared with. */
export function keep() {
  writeResults('instructions', ratiosOf(counted))
}

/** @param {Pick<import('./bench.js').BenchOptions, 'quick' | 'only' | 'tell'>} options @returns {Promise<Count[]>} */
async function countInstructions({ quick, only, tell }) {
  requireValgrind()
  const checks = quick ? 64 : 512
  const folder = mkdtempSync(join(tmpdir(), 'headgate-callgrind-'))
  const out = join(folder, 'out')
  const server = await startRedis({
    under: ['valgrind', '--tool=callgrind', `--callgrind-out-file=${out}`],
    // Its timer would count as well.
    args: ['--hz', '1', '--dynamic-hz', 'no'],
  })
  const admin = await openClient(server.url)
  let dumps = 0
  /** Returns the instructions since the last look. */
  const look = () => {
    execFileSync('callgrind_control', ['-d', String(server.pid)], { stdio: 'ignore' })
    const dump = readFileSync(`${out}.${++dumps}`, 'utf8')
    return Number(/^totals: (\d+)$/m.exec(dump)?.[1])
  }
  /** @type {Count[]} */
  const counts = []
  try {
    for (const { script, rules, calls } of ROWS) {
      if (only !== undefined && script !== EMPTY && !only.includes(script)) continue
      for (const inCall of calls) {
        await admin.flushAll()
        const open = LIMITERS[script]
        if (open === undefined) throw new Error(`no limiter is called '${script}'`)
        const { ask, close } = await open({ url: server.url, prefix: 'count', rules })
        /** @param {string} name */
        const askAll = async name => {
          for (let at = 0; at < checks; at += inCall)
            await Promise.all(Array.from({ length: inCall }, (_, index) => ask(`user:${name}${at + index}`)))
        }
        // Sends the script, and compiles what is compiled at the first call.
        await askAll('w')
        await askAll('w')
        look()
        await askAll('k')
        const first = look() / checks
        await askAll('k')
        const again = look() / checks
        await close()
        counts.push({ script, inCall, counts: { first: Math.round(first), again: Math.round(again) } })
        tell(`${script}, ${inCall} in a call: ${thousands(first)} first, ${thousands(again)} again`)
      }
    }
  } finally {
    await admin.close()
    await server.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  return counts
}

/** @param {readonly Count[]} counts @returns {string} */
function instructionsTable(counts) {
  const ratioOf = emptyOf(counts)
  return formatTable({
    head: [
      'redis-server, instructions a check',
      'checks in a call',
      'first',
      'again',
      'again, × an empty script',
    ],
    rows: counts.map(({ script, inCall, counts: { first, again } }) => [
      OURS.includes(script) ? `headgate, ${script}` : script,
      String(inCall),
      thousands(first),
      thousands(again),
      ratioOf(again).toFixed(2),
    ]),
  })
}

/** Returns the ratios of our scripts to an empty one. @param {readonly Count[]} counts */
function ratiosOf(counts) {
  const ratioOf = emptyOf(counts)
  return Object.fromEntries(
    counts
      .filter(({ script }) => OURS.includes(script))
      .map(({ script, inCall, counts: { first, again } }) => [
        `${script}, ${inCall} in a call`,
        { first: Number(ratioOf(first).toFixed(3)), again: Number(ratioOf(again).toFixed(3)) },
      ]),
  )
}

/**
 * Names the scripts that cost more than the committed run allows.
 *
 * @param {readonly Count[]} counts
 * @param {Readonly<Record<string, Counts>>} committed Ratios to an empty script.
 */
export function dearerThanCommitted(counts, committed) {
  return Object.entries(ratiosOf(counts)).flatMap(([name, ratios]) => {
    const allowed = committed[name]
    if (allowed === undefined)
      return [`${name}: not in bench/results/instructions.json; run without --strict first`]
    return /** @type {const} */ (['first', 'again'])
      .filter(when => !(ratios[when] <= allowed[when] * TOLERANCE))
      .map(when => `${name}, ${when}: ${ratios[when]} × an empty script, ${allowed[when]} × committed`)
  })
}

/** @param {readonly Count[]} counts @returns {(instructions: number) => number} */
function emptyOf(counts) {
  const empty = counts.find(({ script }) => script === EMPTY)?.counts.again ?? Number.NaN
  return instructions => instructions / empty
}

function requireValgrind() {
  try {
    execFileSync('valgrind', ['--version'], { stdio: 'ignore' })
    execFileSync('callgrind_control', ['--version'], { stdio: 'ignore' })
  } catch {
    throw new Error(
      'instructions are counted with valgrind, which is not on PATH. Install it once: apt-get install valgrind, ' +
        'dnf install valgrind, or apk add valgrind perl',
    )
  }
}
