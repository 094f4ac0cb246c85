/** The Python client of the examples, run by a real Python against a real decision API. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createLimiter } from 'headgate'
import { defineConfig } from 'headgate/config'
import { afterEach, expect, it } from 'vitest'
import { systemProgram } from '../../headgate/test/support/system-program.ts'
import { type AdminApi, serveAdmin } from './support/admin-api.js'

const FOLDER = fileURLToPath(new URL('../../../examples/python', import.meta.url))
const CONFIG = defineConfig({
  policies: { api: { algorithm: 'sliding-window-log', limit: 2, window: '1h' } },
  default: { policy: 'api' },
})
const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function api(): Promise<AdminApi> {
  const served = await serveAdmin(createLimiter({ config: CONFIG }))
  cleanUps.push(() => served.close())
  return served
}

async function python(...args: string[]): Promise<ChildProcess> {
  const path = await systemProgram('python3')
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
  return spawn(path, args, { cwd: FOLDER, env, stdio: ['ignore', 'pipe', 'inherit'] })
}

it('the service of the example limits its clients, and goes on without the API', async () => {
  const { url, close } = await api()
  const app = await python('app.py', '0', url)
  cleanUps.push(() => app.kill())
  const [line] = (await once(app.stdout as NodeJS.ReadableStream, 'data')) as [Buffer]
  const appUrl = line.toString().trim()
  const answers = [await fetch(appUrl), await fetch(appUrl), await fetch(appUrl)]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
  expect(answers[0]?.headers.get('x-ratelimit-remaining')).toBe('1')
  expect(answers[2]?.headers.get('retry-after')).toMatch(/^\d+$/)
  close()
  expect((await fetch(appUrl)).status).toBe(200)
})

it('the client lets only so many requests pass in a second while the API does not answer', async () => {
  const program = `
import time
from headgate import Headgate
gone = Headgate("http://127.0.0.1:1", timeout=0.2, open_per_second=5)
began = time.monotonic()
statuses = [gone.check("user:42", policy="api").status for _ in range(200)]
print(statuses.count(200) <= 5 + 5 * (time.monotonic() - began), statuses.count(200) >= 5, statuses[-1])
`
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
  const { stdout } = await promisify(execFile)(await systemProgram('python3'), ['-c', program], {
    cwd: FOLDER,
    env,
  })
  expect(stdout.trim()).toBe('True True 503')
})

it('the client checks by name, peeks, refunds, and tells mistakes and faults apart', async () => {
  const { url } = await api()
  const program = `
import sys
from headgate import Headgate, HeadgateError
limits = Headgate(sys.argv[1], timeout=2)
first = limits.check("user:42", policy="api", cost=2, refundable=True)
print(first.allowed, first.source, limits.peek("user:42", policy="api").allowed, limits.refund(first.reference))
try:
    limits.check("user:42", policy="apo")
except HeadgateError as error:
    print(error.status, error.field)
gone = Headgate("http://127.0.0.1:1", timeout=0.2)
print(gone.check("user:42", policy="api").source, Headgate("http://127.0.0.1:1", fail_open=False).check("user:42", path="/").status)
`
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
  const { stdout } = await promisify(execFile)(await systemProgram('python3'), ['-c', program, url], {
    cwd: FOLDER,
    env,
  })
  expect(stdout.trim().split('\n')).toEqual(['True memory False 2', '400 policy', 'open 503'])
})
