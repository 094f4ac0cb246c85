import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const MAIN = fileURLToPath(new URL('main.js', import.meta.url))

/** @param {...string} args @returns {Promise<{ code: number, output: string }>} */
function load(...args) {
  return new Promise(resolve => {
    execFile(process.execPath, [MAIN, ...args], (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), output: stdout + stderr }),
    )
  })
}

it('the load runs against a real gateway and says of every target whether it was met', async () => {
  const { code, output } = await load('--seconds', '3', '--rate', '100', '--users', '40')
  const outcomes = [...output.matchAll(/^\| .*\| +(met|missed) \|/gm)].map(([, outcome]) => outcome)
  expect(outcomes, output).toHaveLength(8)
  expect(code).toBe(outcomes.includes('missed') ? 1 : 0)
  // These hold however busy the machine is.
  expect(output).toMatch(/none is lost +\| +met/)
  expect(output).not.toContain('are not:')
  expect(Number(/limits on +\| +(\d+)/.exec(output)?.[1])).toBeGreaterThan(10)
}, 60_000)

it('an option out of range is named', async () => {
  const { code, output } = await load('--rate', '1e9')
  expect(output).toContain('--rate: expected a whole number from 20 to 50000, got 1e9')
  expect(code).toBe(1)
})
