import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const SCRIPT = `
  const { simulateAll } = await import(process.argv[1])
  process.stdout.write(JSON.stringify(await simulateAll({ processes: 6, limit: 600 }, () => {})))
`

it('a fleet never admits more than its bound, and little less than one limiter would', async () => {
  const file = fileURLToPath(new URL('simulate.js', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', SCRIPT, file])
  /** @type {import('./simulate.js').Simulated[]} */
  const fleets = JSON.parse(stdout)
  expect(fleets).toHaveLength(8)
  for (const { name, most, bound } of fleets) expect(most, name).toBeLessThanOrEqual(bound)
  const shareOf = (/** @type {string} */ start) => {
    const found = fleets.find(({ name }) => name.startsWith(start))
    return (found?.admitted ?? 0) / (found?.expected ?? 1)
  }
  expect(shareOf('log, every request')).toBeGreaterThan(0.99)
  expect(shareOf('log, leased')).toBeGreaterThan(0.9)
  expect(shareOf('3 regions with a third each, even')).toBeGreaterThan(0.98)
  // Two regions use their thirds; the third one asks for a fifth of the limit, and the rest of its share is nobody's.
  expect(Math.abs(shareOf('3 regions with a third each, traffic 70') - 2 / 3 - 1 / 5)).toBeLessThan(0.05)
  expect(shareOf('log, Redis silent: the windows after')).toBeGreaterThan(0.9)
}, 60_000)
