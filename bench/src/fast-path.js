/**
 * Measures what each trick of `fast-path/` buys, in processor time. Compares the library with a copy of its build that
 * lacks the trick. Takes a slice of each in turn, in one process and one run, so only the ratios mean anything.
 *
 *   npm run bench:fast-path              about three minutes
 *   npm run bench:fast-path -- --quick   under a minute; rough
 */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { helpIfAsked } from './report/help.js'
import { ratioOf, spreadOf } from './report/statistics.js'

helpIfAsked(import.meta.url)

const { values: options } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const ROUNDS = options.quick ? 9 : 31
const SLICE = options.quick ? 10_000 : 40_000
const DIST = dirname(fileURLToPath(import.meta.resolve('headgate')))

/** @typedef {typeof import('headgate') & Pick<typeof import('headgate/config'), 'defineConfig'> & Pick<typeof import('headgate/redis'), 'redisStore'>} Library */
/** @typedef {(turn: number) => Promise<unknown>} Ask */
/** @typedef {{ file: string, from: string, to: string }} Change */

const NO_ONE_UNIT = { file: 'store/memory/memory-store.js', from: 'oneUnit: (name', to: 'noOneUnit: (name' }

/** @type {readonly { trick: string, workload: (library: Library) => Ask, changes: readonly Change[] }[]} */
const TRICKS = [
  { trick: 'one unit without a question', workload: manyKeys, changes: [NO_ONE_UNIT] },
  {
    trick: 'a question of one check as one object',
    workload: costOfTwo,
    changes: [
      {
        file: 'engine/single-question.js',
        from: 'const only = onlyOf(alternatives, shadow);',
        to: 'const only = null;',
      },
      {
        file: 'limiter/named-policies.js',
        from: 'if (only !== undefined &&',
        to: 'if (false &&',
      },
    ],
  },
  {
    trick: 'denials given again in a flood',
    workload: flood,
    changes: [
      {
        file: 'fast-path/kept-denials.js',
        from: 'this.rows[slot] === row ?',
        to: 'this.rows[slot] === -2 ?',
      },
    ],
  },
  {
    trick: 'what a path was resolved to',
    workload: hundredRules,
    changes: [
      { file: 'fast-path/single-limit-requests.js', from: 'known?.isFor(', to: 'false && known?.isFor(' },
    ],
  },
  {
    trick: 'a request on a remote store, not resolved again',
    workload: remoteRules,
    changes: [
      {
        file: 'fast-path/single-limit-policy.js',
        from: '!this.isOwnName(subject)',
        to: 'this.isOwnName(subject) || true',
      },
    ],
  },
]

/** @param {Library} library @param {number} limit @param {number} keys */
function checks({ createLimiter, slidingWindowCounter }, limit, keys) {
  const limiter = createLimiter({ policies: { api: slidingWindowCounter({ limit, window: '1h' }) } })
  const subjects = Array.from({ length: keys }, (_, index) => /** @type {const} */ (`user:${index}`))
  return (/** @type {number} */ turn, cost = 1) => {
    const subject = subjects[(turn * 7_919) % keys] ?? 'user:0'
    return limiter.check(subject, cost === 1 ? { policy: 'api' } : { policy: 'api', cost })
  }
}

/** @param {Library} library */
function manyKeys(library) {
  const check = checks(library, 1_000_000, 20_000)
  return (/** @type {number} */ turn) => check(turn)
}

/** @param {Library} library */
function costOfTwo(library) {
  const check = checks(library, 100_000_000, 1_000)
  return (/** @type {number} */ turn) => check(turn, 2)
}

/** @param {Library} library */
function flood(library) {
  const check = checks(library, 10, 1)
  return (/** @type {number} */ turn) => check(turn)
}

/** @param {Library} library */
function hundredRules(library) {
  return requests(library.createGate({ config: rulesOf(library) }))
}

/** Keeps 512 requests under way. @param {Library} library */
function remoteRules(library) {
  const store = library.redisStore(admitting, { deadlineMs: 5_000, processes: 1 })
  const request = requests(library.createGate({ store, config: rulesOf(library) }))
  /** @type {Promise<unknown>[]} */
  let asked = []
  return async (/** @type {number} */ turn) => {
    asked.push(request(turn))
    if (asked.length < 512) return
    const all = asked
    asked = []
    await Promise.all(all)
  }
}

/** @param {Library} library */
function rulesOf({ defineConfig, slidingWindowCounter }) {
  const rules = Array.from({ length: 100 }, (_, index) => ({
    match: { method: 'GET', path: /** @type {const} */ (`/api/things${index}/:id`) },
    policy: /** @type {const} */ ('api'),
  }))
  return defineConfig({
    policies: { api: slidingWindowCounter({ limit: 100_000_000, window: '1h' }) },
    rules,
  })
}

/** @param {Pick<import('headgate').Gate, 'request'>} gate @returns {Ask} */
function requests(gate) {
  const paths = Array.from({ length: 1_000 }, (_, index) => `/api/things${(index % 10) * 10}/${index}`)
  return turn => gate.request({ subject: 'user:1', method: 'GET', path: paths[turn % 1_000] ?? '/' })
}

/** Stands in for Redis: takes the command as bytes and admits everything at the end of the turn. */
const admitting = {
  /** @param {string} sha @param {string[]} keys @param {string[]} args */
  evalsha: (sha, keys, args) =>
    new Promise(resolve => {
      const bytes = Buffer.from([sha, ...keys, ...args].join('\r\n'))
      setImmediate(() => resolve([bytes.length, ...keys.map(() => 1_000_000)]))
    }),
  eval: async () => null,
}

/** @param {string} folder @returns {Promise<Library>} */
async function load(folder) {
  const parts = ['index.js', 'config.js', 'redis.js'].map(file => import(join(folder, file)))
  return Object.assign({}, ...(await Promise.all(parts)))
}

/** Copies the build with some lines changed. @param {string} folder @param {readonly Change[]} changes */
async function copyWithout(folder, changes) {
  await cp(DIST, folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }\n')
  for (const { file, from, to } of changes) {
    const text = await readFile(join(folder, file), 'utf8')
    if (!text.includes(from)) throw new Error(`${file} has changed: it does not say "${from}"`)
    await writeFile(join(folder, file), text.replace(from, to))
  }
}

/** @param {Ask} ask */
async function nsOf(ask) {
  const { user, system } = process.cpuUsage()
  for (let turn = 0; turn < SLICE; turn++) await ask(turn)
  const after = process.cpuUsage()
  return ((after.user + after.system - user - system) * 1000) / SLICE
}

const folder = await mkdtemp(join(tmpdir(), 'headgate-fast-path-'))
try {
  const library = await load(DIST)
  for (const [index, { trick, workload, changes }] of TRICKS.entries()) {
    const copy = join(folder, String(index))
    await copyWithout(copy, changes)
    const [withTrick, without] = [workload(library), workload(await load(copy))]
    /** @type {[number[], number[]]} */
    const measured = [[], []]
    for (let round = 0; round < ROUNDS + 3; round++) {
      const pair = /** @type {const} */ ([await nsOf(withTrick), await nsOf(without)])
      // The compiler is still at work during the first rounds.
      if (round > 2) for (const side of /** @type {const} */ ([0, 1])) measured[side].push(pair[side])
    }
    const [as, other] = measured.map(values => Math.round(spreadOf(values).median))
    const { median, q1, q3 } = ratioOf(measured[1], measured[0])
    process.stdout.write(
      `${trick.padEnd(48)} ${as} ns, without ${other} ns: ${median.toFixed(2)} × (${q1.toFixed(2)} – ${q3.toFixed(2)})\n`,
    )
  }
} finally {
  await rm(folder, { recursive: true, force: true })
}
