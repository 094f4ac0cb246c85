import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

it('the fetch example lets five requests of a key pass, and another key still', async () => {
  const example = new URL('../../../examples/fetch/worker.mjs', import.meta.url).href
  const { default: worker } = (await import(example)) as {
    default: { fetch(request: Request): Promise<Response> }
  }
  const ask = async (key: string): Promise<number> =>
    (await worker.fetch(new Request('http://localhost/', { headers: { 'x-api-key': key } }))).status
  const statuses: number[] = []
  for (let time = 0; time < 6; time++) statuses.push(await ask('one'))
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
  expect(await ask('two')).toBe(200)
})

it('the degradation example shows what callers get while the store is frozen', async () => {
  const example = fileURLToPath(
    new URL('../../../examples/degradation/degradation.test.mjs', import.meta.url),
  )
  const { stdout } = await promisify(execFile)(process.execPath, ['--test', '--test-reporter=tap', example])
  expect(stdout).toMatch(/^# pass 1$/m)
  expect(stdout).toMatch(/^# fail 0$/m)
})
