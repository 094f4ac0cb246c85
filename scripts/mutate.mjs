// `npm run mutate`: changes one operator, constant or condition at a time where a mistake would let too many in or lock
// somebody out, runs the tests nearest to it, and prints which changes no test noticed. The sources are not touched: a plugin
// of scripts/mutate.config.mjs hands vitest the changed text.
//   npm run mutate                       a sample of each part
//   … -- --all                           every change: hours
//   … -- --only=breaker --sample=40      one part, more of it; --seed=2 for another sample
//   … -- --minutes=20                    begins with no further change of a part after so long, and says of how many it knows

import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { mutationsOf } from './mutations.mjs'
import { bin, root, say } from './prepare.mjs'

const SRC = 'packages/headgate/src'
const TEST = 'packages/headgate/test'

const algorithmFiles = readdirSync(join(root, SRC, 'algorithms')).filter(name => /^[a-z-]+\.ts$/.test(name))

/** The sources to mutate, and the tests nearest to them. */
const PARTS = {
  algorithms: {
    sources: algorithmFiles.map(name => `${SRC}/algorithms/${name}`),
    tests: [`${TEST}/algorithms`, `${TEST}/contract/memory.test.ts`, `${TEST}/leases.test.ts`],
  },
  breaker: {
    sources: [`${SRC}/store/remote/breaker.ts`],
    tests: [`${SRC}/store/remote/breaker.test.ts`],
  },
  keys: {
    sources: [`${SRC}/subject/key.ts`],
    tests: [`${SRC}/subject/key.test.ts`, `${TEST}/subject/ipv6-budgets.test.ts`],
  },
  leases: {
    sources: [`${SRC}/store/remote/leases.ts`],
    tests: [`${TEST}/leases.test.ts`, `${TEST}/leases-of-one-process.test.ts`],
  },
  resolution: {
    sources: ['resolve', 'find-levels', 'question-of'].map(name => `${SRC}/policy/${name}.ts`),
    tests: [`${TEST}/rules/resolve.test.ts`, `${TEST}/rules/rules.test.ts`],
  },
}

const option = name => {
  const found = process.argv.find(arg => arg.startsWith(`--${name}=`))
  return found?.slice(name.length + 3)
}
const only = option('only')
const seed = Number(option('seed') ?? 1)
const minutes = Number(option('minutes') ?? Number.POSITIVE_INFINITY)
const sampleSize = process.argv.includes('--all') ? Number.POSITIVE_INFINITY : Number(option('sample') ?? 12)

/** Numbers from 0 to 1, the same for the same seed. */
function randomFrom(start) {
  let state = start
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

function sampleOf(list, size, random) {
  if (list.length <= size) return list
  return list
    .map(item => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .slice(0, size)
    .map(({ item }) => item)
}

/** How long the tests of a part may take with a change. */
const MOST_MS = 600_000
const SIGNALS = ['SIGINT', 'SIGTERM']

/** Whether the tests pass with this change; `undefined` for none at all. */
function testsPass(tests, mutation) {
  const config = join(root, 'scripts', 'mutate.config.mjs')
  const args = [bin('vitest/vitest.mjs'), 'run', '--config', config, '--bail=1', '--reporter=dot', ...tests]
  const env = { ...process.env, ...(mutation && { HEADGATE_MUTATION: JSON.stringify(mutation) }) }
  return new Promise(resolve => {
    const child = spawn(process.execPath, args, {
      cwd: root,
      env,
      stdio: mutation ? 'ignore' : ['ignore', 'ignore', 2],
      detached: true,
    })
    // A change that makes a loop endless is noticed by nobody's assertion, and noticed all the same. The loop runs in a worker
    // of vitest's, which only a signal to the whole group ends.
    const end = () => process.kill(-child.pid, 'SIGKILL')
    const timer = setTimeout(end, MOST_MS)
    const stop = () => {
      end()
      process.exit(1)
    }
    for (const signal of SIGNALS) process.once(signal, stop)
    child.on('close', code => {
      clearTimeout(timer)
      for (const signal of SIGNALS) process.off(signal, stop)
      resolve(code === 0)
    })
  })
}

function describe({ file, line, before, after }) {
  return `${file}:${line}  ${before.trim()}  →  ${after.trim()}`
}

const survivors = []
let tried = 0
for (const [name, { sources, tests }] of Object.entries(PARTS)) {
  if (only !== undefined && only !== name) continue
  if (!(await testsPass(tests))) throw new Error(`the tests of ${name} fail without any change`)
  const all = sources.flatMap(file => mutationsOf(readFileSync(join(root, file), 'utf8'), file))
  const sample = sampleOf(all, sampleSize, randomFrom(seed))
  const endMs = performance.now() + minutes * 60_000
  let noticed = 0
  let known = 0
  for (const mutation of sample) {
    if (performance.now() > endMs) break
    known++
    if (await testsPass(tests, mutation)) {
      survivors.push(mutation)
      say(`  not noticed: ${describe(mutation)}`)
    } else noticed++
  }
  tried += known
  say(`${name}: ${noticed} of ${known} noticed, of ${all.length} there are`)
}
console.log(`score: ${(100 * (1 - survivors.length / tried)).toFixed(1)} % of ${tried} changes noticed`)
