import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

it.each([
  ['bench', 'bench.js'],
  ['demo', 'demo/main.js'],
  ['proof -- load', 'load/main.js'],
  ['proof -- soak', 'soak/main.js'],
])('npm run %s with --help says how to run it, and runs nothing', (command, path) => {
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url))
  const help = execFileSync(process.execPath, [file, '--help'], { encoding: 'utf8', timeout: 20_000 })
  expect(help).toMatch(new RegExp(`^ {2}npm run ${command}\\b`, 'm'))
  expect(help).not.toContain('*/')
})
