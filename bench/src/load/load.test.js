import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'

const MAIN = fileURLToPath(new URL('main.js', import.meta.url))
/** @type {string} */
let folder
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-load-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** @param {...string} args @returns {Promise<{ code: number, output: string }>} */
function load(...args) {
  return new Promise(resolve => {
    execFile(process.execPath, [MAIN, ...args], (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), output: stdout + stderr }),
    )
  })
}

it('the load runs against a real gateway and says of every target whether it was met', async () => {
  const html = join(folder, 'load.html')
  const { code, output } = await load('--seconds', '3', '--rate', '100', '--users', '40', '--html', html)
  const verdicts = output.match(/^(met {3}|MISSED) {2}.*$/gm) ?? []
  expect(verdicts, output).toHaveLength(8)
  expect(code).toBe(verdicts.some(line => line.startsWith('MISSED')) ? 1 : 0)
  // These hold however busy the machine is.
  expect(output).toContain('met     none is lost: 0')
  expect(output).not.toContain('are not:')
  expect(Number(/limits on +(\d+) requests/.exec(output)?.[1])).toBeGreaterThan(10)

  const page = await readFile(html, 'utf8')
  expect(page.match(/<svg /g)).toHaveLength(3)
  expect(page).not.toMatch(/(src|href)=/)
}, 60_000)

it('an order that cannot be carried out is refused by name', async () => {
  const { code, output } = await load('--rate', '1e9')
  expect(output).toContain('--rate: expected a whole number from 20 to 50000, got 1e9')
  expect(code).toBe(1)
})
