// `npm test`: everything that can be checked by running it. Arguments are passed on to vitest:
// `npm test -- packages/server`. The last line alone says how it went: `N passed, N failed`.

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bin, prepare, run, say } from './prepare.mjs'
import { ensureProgram } from './system-programs.mjs'

/** The programs the tests talk to. */
const PROGRAMS = [
  'redis-server',
  'nginx',
  'caddy',
  'haproxy',
  'apache2',
  'chromium',
  'python3',
  'php-cgi',
  'prometheus',
]

/** Reads vitest's own count. A run that broke off before it wrote one has no tests to count. */
async function readResult(file) {
  try {
    const { numPassedTests, numFailedTests, testResults } = JSON.parse(await readFile(file, 'utf8'))
    // A file that does not load fails without containing a test: it counts as one failure of its own.
    const broken = testResults.filter(
      suite => suite.status === 'failed' && suite.assertionResults.length === 0,
    )
    return { passed: numPassedTests, failed: numFailedTests + broken.length }
  } catch (error) {
    say(`no result from vitest: ${error.message}`)
    return { passed: 0, failed: 0 }
  }
}

async function test(args) {
  await prepare()
  // Runs before the tests, one at a time, because package managers lock each other out.
  for (const name of args.length === 0 ? PROGRAMS : ['redis-server']) await ensureProgram(name, { log: say })
  const folder = await mkdtemp(join(tmpdir(), 'headgate-test-'))
  try {
    const file = join(folder, 'result.json')
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
    const code = await run(process.execPath, [bin('vitest/vitest.mjs'), 'run', ...reporters, ...args])
    const { passed, failed } = await readResult(file)
    if (passed + failed === 0) say('no test was run, which is a failure')
    else if (code !== 0 && failed === 0)
      say(`vitest ended with exit code ${code} although no test failed; see above`)
    process.stdout.write(`${passed} passed, ${failed} failed\n`)
    return code === 0 && failed === 0 && passed > 0 ? 0 : 1
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

try {
  process.exitCode = await test(process.argv.slice(2))
} catch (error) {
  say(error.message)
  process.exitCode = 1
}
