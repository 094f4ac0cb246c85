import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const ROOT = new URL('../../../', import.meta.url)
const BENCH = new URL('bench/', ROOT)

/** @param {URL} folder @returns {Record<string, string>} */
const scriptsOf = folder => JSON.parse(readFileSync(new URL('package.json', folder), 'utf8')).scripts

/** @type {[name: string, file: string][]} */
const PROGRAMS = [
  ...['demo', 'load', 'soak'].map(name => /** @type {const} */ ([name, scriptsOf(ROOT)[name] ?? ''])),
  ...Object.entries(scriptsOf(BENCH)).map(
    ([name, line]) => /** @type {const} */ ([name, `bench/${line.slice('node '.length)}`]),
  ),
].map(([name, line]) => [name, fileURLToPath(new URL(line.split(' ').at(-1) ?? '', ROOT))])

it.each(PROGRAMS)('npm run %s -- --help says how to run it, and runs nothing', (name, file) => {
  const help = execFileSync(process.execPath, [file, '--help'], { encoding: 'utf8', timeout: 20_000 })
  expect(help).toMatch(new RegExp(`^ {2}npm run ${name}\\b.* -- --\\w`, 'm'))
  expect(help).not.toContain('*/')
})
