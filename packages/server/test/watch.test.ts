/** The stats in the terminal, of real servers that share a Redis. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { type HeadgateProcess, serveHeadgateIn } from './support/headgate-process.js'
import { runInProcess } from './support/run-in-process.js'

let redis: RedisProcess
let servers: readonly HeadgateProcess[] = []

/** Lines that a webhook received. */
const told: string[] = []
const webhook = createServer((req, res) => {
  let text = ''
  req.on('data', chunk => {
    text += chunk
  })
  req.on('end', () => {
    told.push((JSON.parse(text) as { text: string }).text)
    res.end()
  })
})

async function serve(): Promise<HeadgateProcess> {
  const { port } = webhook.address() as AddressInfo
  return serveHeadgateIn(
    { env: { HOOK: `http://127.0.0.1:${port}/` } },
    ...['--demo', '--redis', `redis://127.0.0.1:${redis.port}`, '--service', 'shop', '--max-calls', '900'],
    // A deadline long enough for a busy machine.
    ...[
      '--deadline',
      '2000',
      '--alert-webhook',
      'env:HOOK',
      '--alert',
      'budget-memory=1,0s,3600s',
      'denial-rate=off',
    ],
  )
}

beforeAll(async () => {
  redis = await startRedis()
  await new Promise<void>(resolve => webhook.listen(0, '127.0.0.1', resolve))
  servers = await Promise.all([serve(), serve()])
}, 60_000)

afterAll(async () => {
  webhook.close()
  webhook.closeAllConnections()
  await Promise.all(servers.map(server => server.end('SIGTERM')))
  await redis.stop()
})

const at = (index: number) => servers[index]?.adminUrl ?? ''

async function stats(index: number): Promise<Record<string, unknown>> {
  return (await (await fetch(`${at(index)}/v1/stats`)).json()) as Record<string, unknown>
}

describe('two servers on one Redis', () => {
  let reference = ''

  it('each of two servers on one Redis shows what both have counted', { timeout: 30_000 }, async () => {
    for (let index = 0; index < 30; index++) {
      const response = await fetch(servers[index % 2]?.gatewayUrl ?? '', {
        headers: { Accept: 'application/json' },
      })
      const body = await response.text()
      if (response.status === 429) reference = JSON.parse(body).reference
    }
    expect(reference).toMatch(/^[a-z2-7]{12}$/)
    await vi.waitFor(
      async () => {
        for (const index of [0, 1]) {
          expect(await stats(index)).toMatchObject({
            scope: 'fleet',
            processes: { live: 2, services: [{ service: 'shop', live: 2 }] },
            store: { kind: 'redis', state: 'up', availability: expect.any(Number), callCapPerSecond: 900 },
            deniedCallers: [{ subject: 'ip:127.0.…', reference: reference }],
          })
        }
      },
      { timeout: 15_000, interval: 200 },
    )
    const { store } = await stats(0)
    const { redis } = store as { redis: { usedMemoryBytes: number; keys: number } }
    expect(redis.usedMemoryBytes).toBeGreaterThan(100_000)
    expect(redis.keys).toBeGreaterThan(0)
  })

  it('headgate watch prints a line, headgate top who was rejected, headgate inspect why', async () => {
    const watched = await runInProcess(['watch', '--count', '1', '--server', at(1)])
    expect(watched.code).toBe(0)
    expect(watched.out).toMatch(
      /^\d\d:\d\d:\d\d {2}[\d.]+ allowed\/s {2}[\d.]+ denied\/s .* redis up {2}fleet\n$/,
    )
    const top = await runInProcess(['top', '--count', '1', '--server', at(0)])
    expect(top.out).toContain(`ip:127.0.…  ${reference}`)
    const json = await runInProcess(['top', '--count', '1', '--json', '--server', at(0)])
    expect(JSON.parse(json.out)).toMatchObject({ deniedCallers: [{ reference: reference }] })
    const inspected = await runInProcess(['inspect', reference, '--server', at(1)])
    expect(inspected.code).toBe(0)
    expect(inspected.out).toContain(`ip:127.0.…, reference ${reference}`)
    expect(inspected.out).toMatch(/rejected \d{4}-\d\d-\d\dT.*: limit-exceeded, tier\./)
    expect(inspected.out).not.toContain('127.0.0.1')
  })

  it('headgate why says which rule and limit denied a request, by its reference or its id, on either server', async () => {
    const denied = await fetch(servers[0]?.gatewayUrl ?? '', { method: 'PUT' })
    expect(denied.status).toBe(429)
    const byReference = await runInProcess(['why', reference, '--server', at(1)])
    expect(byReference).toMatchObject({
      code: 0,
      out: expect.stringMatching(/denied by tier\.\S+, rule default: /),
    })
    expect(byReference.out).not.toContain('127.0.0.1')
    const [denial] = JSON.parse(
      (await runInProcess(['why', reference, '--json', '--server', at(1)])).out,
    ).denials
    const byId = await runInProcess(['why', denial.requestId, '--server', at(1)])
    expect(byId.out).toContain(reference)
    expect(byId.out).toMatch(/^\d{4}-.*Z {2}(?:GET|PUT) \/\n/)
    expect((await runInProcess(['why', 'no-such-request', '--server', at(0)])).code).toBe(1)
  })

  it('headgate watch and headgate top read Redis itself, and are no process of the fleet', async () => {
    const place = ['--redis', `redis://127.0.0.1:${redis.port}`]
    const top = await runInProcess(['top', '--count', '1', ...place])
    expect(top.code).toBe(0)
    expect(top.out).toContain(`ip:127.0.…  ${reference}`)
    const watched = await runInProcess(['watch', '--count', '2', '--json', ...place])
    const [, last] = watched.out.trim().split('\n')
    expect(JSON.parse(last as string)).toMatchObject({
      scope: 'fleet',
      store: { kind: 'redis', state: 'up' },
      processes: { live: 2, services: [{ service: 'shop', live: 2 }] },
    })
  })

  it('one of two servers tells of a budget that is used up, and both show it', {
    timeout: 30_000,
  }, async () => {
    for (const index of [0, 1]) {
      await vi.waitFor(
        async () =>
          expect((await stats(index)).alerts).toMatchObject([{ name: 'budget-memory', state: 'firing' }]),
        { timeout: 15_000, interval: 100 },
      )
    }
    await vi.waitFor(() => expect(told).toHaveLength(1), 20_000)
    expect(told[0]).toMatch(
      /^Firing: Headgate budget-memory: Redis uses [\d.]+ MB of memory \(budget 0 MB\)$/,
    )
  })

  it('servers show the same trail of changes, also one that was started later', {
    timeout: 30_000,
  }, async () => {
    expect((await runInProcess(['control', 'multiplier', '2', '--server', at(0)])).code).toBe(0)
    const trail = async (url: string) => (await fetch(`${url}/v1/changes`)).json()
    const changes = {
      scope: 'fleet',
      changes: [{ atMs: expect.any(Number), by: null, what: 'set control: limits on, multiplier 2' }],
    }
    expect(await trail(at(1))).toEqual(changes)
    const later = await serve()
    expect(await trail(later.adminUrl)).toEqual(changes)
    await later.end('SIGTERM')
  })

  it('mistakes of watch and top are named', async () => {
    expect((await runInProcess(['watch', '--count', '0'])).err).toContain(
      '--count: expected a whole number from 1',
    )
    const away = await runInProcess(['top', '--redis', 'redis://127.0.0.1:1'])
    expect(away).toMatchObject({
      code: 3,
      err: expect.stringContaining('--redis: expected one that answers'),
    })
    const unknown = await runInProcess(['inspect', 'aaaaaaaaaaaa', '--server', at(0)])
    expect(unknown.err).toContain(
      'expected the reference of a subject that was denied or looked for lately; got aaaaaaaaaaaa',
    )
    expect((await runInProcess(['serve', '--demo', '--alert', 'nonsense=1'])).err).toContain(
      '--alert: expected',
    )
    expect((await runInProcess(['serve', '--demo', '--alert', 'latency=50,1m'])).err).toContain(
      '--alert: expected name=threshold',
    )
    const badHook = await runInProcess(['serve', '--demo', '--alert-webhook', 'https://hooks.example/secret'])
    expect(badHook.err).toContain('--alert-webhook: expected file:path or env:VARIABLE')
    expect(badHook.err).not.toContain('secret')
  })
})
