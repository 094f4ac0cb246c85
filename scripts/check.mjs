// `npm run check`: everything that can be checked without running the product. Goes through all steps, says how long
// each took, and fails at the end if any of them failed.

import { checkPackages } from './check-packages.mjs'
import { bin, ensureInstalled, run, say, seconds } from './prepare.mjs'

const node = (...args) => run(process.execPath, args)

const STEPS = [
  ['types of the sources', () => node(bin('typescript/bin/tsc'), '-b')],
  ['types of the tests', () => node(bin('typescript/bin/tsc'), '-p', 'tsconfig.test.json', '--noEmit')],
  ['types of the bench', () => node(bin('typescript/bin/tsc'), '-p', 'bench', '--noEmit')],
  ['the API report', () => node('scripts/api-report.mjs', '--check')],
  ['format and lint', () => node(bin('@biomejs/biome/bin/biome'), 'check', '--error-on-warnings', '.')],
  ['unused files, exports and dependencies', () => node(bin('knip/bin/knip.js'), '--no-progress')],
  ['packages as they are published', checkPackages],
]

/** A step that throws has failed; the others still run. */
async function passes(work) {
  try {
    return (await work()) === 0
  } catch (error) {
    say(error.message)
    return false
  }
}

async function check() {
  await ensureInstalled()
  const results = []
  for (const [name, work] of STEPS) {
    say(`\n== ${name}`)
    const began = performance.now()
    const passed = await passes(work)
    results.push({ name, passed, elapsed: seconds(performance.now() - began) })
  }
  say('')
  for (const { name, passed, elapsed } of results)
    say(`${passed ? 'ok    ' : 'FAILED'}  ${elapsed.padStart(7)}  ${name}`)
  return results.every(result => result.passed) ? 0 : 1
}

try {
  process.exitCode = await check()
} catch (error) {
  say(error.message)
  process.exitCode = 1
}
