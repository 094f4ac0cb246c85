import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryStore } from 'headgate'
import { defineConfig } from 'headgate/config'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { changed } from '../../headgate/test/support/changed.ts'
import { startFront } from '../src/service/front.js'
import { createDeciding } from '../src/service/service.js'
import { type HeadgateProcess, serveHeadgate, serveHeadgateIn } from './support/headgate-process.js'
import { lines } from './support/raw-http.js'
import { type RawUpstream, startRawUpstream } from './support/raw-upstream.js'

let folder = ''
let file = ''
let running: HeadgateProcess | undefined
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-reload-'))
  file = join(folder, 'headgate.yaml')
})
afterEach(() => {
  running?.child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

/** As editors do it: written completely under another name, then renamed. */
function put(text: string): void {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}

function limitOf(limit: number): string {
  return `policies:\n  api: { algorithm: sliding-window-log, limit: ${limit}, window: 1m }\ndefault: { policy: api }\n`
}

async function healthOf({ adminUrl }: HeadgateProcess): Promise<Record<string, unknown>> {
  return (await (await fetch(`${adminUrl}/healthz`)).json()) as Record<string, unknown>
}

/** Sends requests over few connections, one after the other on each, until stopped. */
function load(url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const statuses = new Map<number | string, number>()
  let going = true
  const count = (what: number | string) => statuses.set(what, (statuses.get(what) ?? 0) + 1)
  const one = () =>
    new Promise<void>(resolve => {
      const asked = request(url, { agent }, answer => {
        answer.resume().once('close', resolve)
        count(answer.statusCode ?? 0)
      })
      asked.on('error', error => {
        count(error.message)
        resolve()
      })
      asked.end()
    })
  const workers = Array.from({ length: 8 }, async () => {
    while (going) await one()
  })
  return {
    async stop() {
      going = false
      await Promise.all(workers)
      agent.destroy()
      return statuses
    },
  }
}

describe('a policy file that changes while the gateway serves', () => {
  it('a policy file that changes is in use soon, and usage carries over', async () => {
    put(limitOf(3))
    running = await serveHeadgate('--config', file, '--demo')
    const { gatewayUrl } = running
    const ask = async () => (await fetch(gatewayUrl)).status
    expect([await ask(), await ask(), await ask(), await ask()]).toEqual([200, 200, 200, 429])
    put(limitOf(5))
    await expect.poll(ask).toBe(200)
    expect([await ask(), await ask()]).toEqual([200, 429])
    put(limitOf(2))
    await expect.poll(async () => (await fetch(gatewayUrl)).headers.get('x-ratelimit-limit')).toBe('2')
    expect(await ask()).toBe(429)
    expect(running.stdout()).toContain('reloaded')
  })

  it('what is probably a mistake in the file is logged at the start, and after a change only what is new', async () => {
    const never = 'never: { algorithm: sliding-window-log, limit: 3, window: 1m }'
    const policies = (text: string) => `policies: { ${text} }\ntiers: default\n`
    put(policies(never))
    running = await serveHeadgate('--config', file, '--demo')
    const { stdout } = running
    const warnings = () => stdout().match(/^.*\(WARN_HEADGATE_\w+\)$/gm) ?? []
    expect(warnings()).toEqual([expect.stringContaining(`${file}:1:13 policies.never: `)])
    put(policies(`${never}, neither: { algorithm: sliding-window-log, limit: 3, window: 1m }`))
    await expect.poll(stdout, { timeout: 10_000 }).toContain('policies.neither: ')
    expect(warnings()).toHaveLength(2)
  })

  it('the last good policy file is kept when the next is broken; the gateway says so loudly, and recovers', async () => {
    put(limitOf(1_000))
    running = await serveHeadgate('--config', file, '--demo')
    expect(await healthOf(running)).toEqual({ status: 'ok', config: 'current', rejectedConfigs: 0 })
    put(limitOf(5).replace('window:', 'windw:'))
    await expect
      .poll(() => healthOf(running as HeadgateProcess))
      .toEqual({
        status: 'ok',
        config: 'stale',
        rejectedConfigs: 1,
      })
    expect(running.stdout()).toContain('NOT in use, the last good configuration stays')
    expect(running.stdout()).toContain('did you mean "window"?')
    expect((await fetch(running.gatewayUrl)).headers.get('x-ratelimit-limit')).toBe('1000')
    put(limitOf(1_001))
    await expect.poll(async () => (await healthOf(running as HeadgateProcess)).config).toBe('current')
    expect((await fetch(running.gatewayUrl)).headers.get('x-ratelimit-limit')).toBe('1001')
  })

  it('a policy file that changes 50 times under load drops no request', async () => {
    put(limitOf(1_000_000))
    running = await serveHeadgate('--config', file, '--demo')
    const clients = load(running.gatewayUrl)
    const stateNow = async () => (await healthOf(running as HeadgateProcess)).config
    for (let reload = 1; reload <= 50; reload++) {
      const isBroken = reload % 10 === 0
      put(isBroken ? 'broken: [' : limitOf(1_000_000 + reload))
      running.child.kill('SIGHUP')
      if (isBroken) await expect.poll(stateNow).toBe('stale')
      else await sleep(20)
    }
    put(limitOf(2_000_000))
    const limitNow = async () =>
      (await fetch((running as HeadgateProcess).gatewayUrl)).headers.get('x-ratelimit-limit')
    await expect.poll(limitNow).toBe('2000000')
    const statuses = await clients.stop()
    expect([...statuses.keys()]).toEqual([200])
    expect(statuses.get(200)).toBeGreaterThan(100)
    expect((await healthOf(running)).rejectedConfigs).toBeGreaterThanOrEqual(5)
    expect((await running.end('SIGTERM')).code).toBe(0)
  })

  it('a policy file that changes leaves a request that is being decided its upstream', async () => {
    const [before, after] = [await startRawUpstream(), await startRawUpstream()]
    before.answerWith(lines('HTTP/1.1 200 OK', 'Content-Length: 0', 'X-From: before'))
    const to = ({ url }: RawUpstream) => defineConfig({ upstream: url })
    const engine = memoryStore()
    const waiting: (() => void)[] = []
    const store = changed(engine, {
      decide(check) {
        waiting.push(() => engine.decide(check))
      },
    })
    const config = to(before)
    const log = () => {}
    const drain = { delayMs: 0, timeoutMs: 1_000 }
    const place = { host: '127.0.0.1', port: 0, bounds: {}, drain, upstream: null, demo: false }
    const front = await startFront(createDeciding({ config, log, store }), { config, log, ...place })
    try {
      const asked = fetch(front.gatewayUrl)
      await expect.poll(() => waiting.length).toBe(1)
      await front.apply(to(after))
      waiting[0]?.()
      const { status, headers } = await asked
      expect([status, headers.get('x-from')]).toEqual([200, 'before'])
    } finally {
      await front.stop()
      await before.close()
      await after.close()
    }
  })
})

describe('settings of the environment', () => {
  it('settings of the environment come before the file, and flags before them', async () => {
    put(limitOf(1_000))
    const settings = { RATE_LIMIT_RULES_PATH: file, RATE_LIMIT_REQUESTS: '7', RATE_LIMIT_DURATION: '60' }
    running = await serveHeadgateIn({ cwd: folder, env: settings }, '--demo')
    const limitNow = async () =>
      (await fetch((running as HeadgateProcess).gatewayUrl)).headers.get('x-ratelimit-limit')
    expect(await limitNow()).toBe('7')
    // Also after the file has changed.
    put(limitOf(2_000))
    await expect.poll(() => running?.stdout()).toContain('reloaded')
    expect(await limitNow()).toBe('7')
    await running.end('SIGTERM')

    writeFileSync(join(folder, 'flag.yaml'), 'headers: none\n')
    running = await serveHeadgateIn(
      { cwd: folder, env: { RATE_LIMIT_RULES_PATH: file } },
      '--demo',
      '--config',
      'flag.yaml',
    )
    expect(await limitNow()).toBeNull()
  })

  it('settings of the environment need no file', async () => {
    running = await serveHeadgateIn(
      { cwd: folder, env: { RATE_LIMIT_GLOBAL_CAPACITY: '4' } },
      '--upstream',
      'http://127.0.0.1:9',
    )
    expect((await fetch(running.gatewayUrl)).headers.get('x-ratelimit-limit')).toBe('4')
  })
})
