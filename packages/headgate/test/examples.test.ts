import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../src/config.js'

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

it('the policy-file example limits logins as its file says, and as the file says after it changed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-example-'))
  const example = new URL('../../../examples/policy-file/app.mjs', import.meta.url).href
  const { createApp } = (await import(example)) as {
    createApp(file: string): Promise<{ server: Server }>
  }
  const text = readFileSync(new URL('./headgate.yaml', example), 'utf8')
  const file = join(folder, 'headgate.yaml')
  writeFileSync(file, text)
  const { server } = await createApp(file)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const login = async (): Promise<number> => (await fetch(`${url}/login`, { method: 'POST' })).status
  try {
    const statuses: number[] = []
    for (let time = 0; time < 6; time++) statuses.push(await login())
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
    // Another spelling is the same route; a static file is not limited.
    expect((await fetch(`${url}/LOGIN/`, { method: 'POST' })).status).toBe(429)
    expect((await fetch(`${url}/style.css`)).headers.has('x-ratelimit-limit')).toBe(false)
    writeFileSync(file, text.replace('limit: 5, window: 1m', 'limit: 7, window: 1m'))
    await expect.poll(login, { timeout: 5_000 }).toBe(200)
    expect([await login(), await login()]).toEqual([200, 429])
  } finally {
    server.closeAllConnections()
    await new Promise(resolve => server.close(resolve))
    rmSync(folder, { recursive: true, force: true })
  }
})

describe('every policy file that the documentation shows is sound', () => {
  const guides = new URL('../../../docs/guide/', import.meta.url)
  const pages = [
    ...readdirSync(guides).map(name => new URL(name, guides)),
    new URL('../../../README.md', import.meta.url),
  ]
  const shown = pages.flatMap(page =>
    [...readFileSync(page, 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g)].map(
      (match, index) => [`${page.pathname.split('/').at(-1)} ${index + 1}`, match[1] as string] as const,
    ),
  )

  it.each(shown)('%s', async (_name, text) => {
    await expect(parseConfig(text, 'shown.yaml')).resolves.toBeDefined()
  })

  it('and there are some', () => {
    expect(shown.length).toBeGreaterThan(5)
  })
})
