import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const ROOT = new URL('../../../', import.meta.url)
/** @type {Record<string, string>} */
const scripts = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')).scripts

it.each(['bench', 'demo', 'load', 'soak'])(
  'npm run %s -- --help says how to run it, and runs nothing',
  name => {
    const file = fileURLToPath(new URL(scripts[name]?.split(' ').at(-1) ?? '', ROOT))
    const help = execFileSync(process.execPath, [file, '--help'], { encoding: 'utf8', timeout: 20_000 })
    expect(help).toMatch(new RegExp(`^ {2}npm run ${name}\\b.* -- \\S`, 'm'))
    expect(help).not.toContain('*/')
  },
)
