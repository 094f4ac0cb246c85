/** The figures in the terminal, of real servers that share a Redis. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { type HeadgateProcess, serveHeadgate } from './support/headgate-process.js'
import { runInProcess } from './support/run-in-process.js'

let redis: RedisProcess
let servers: readonly HeadgateProcess[] = []

beforeAll(async () => {
  redis = await startRedis()
  const url = `redis://127.0.0.1:${redis.port}`
  servers = await Promise.all([0, 1].map(() => serveHeadgate('--demo', '--redis', url, '--service', 'shop')))
}, 60_000)

afterAll(async () => {
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
            store: { kind: 'redis', state: 'up', availability: 1 },
            violators: [{ subject: 'ip:127.0.…', handle: reference }],
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

  it('headgate watch prints a line, headgate top who was refused, headgate inspect why', async () => {
    const watched = await runInProcess(['watch', '--count', '1', '--server', at(1)])
    expect(watched.code).toBe(0)
    expect(watched.out).toMatch(
      /^\d\d:\d\d:\d\d {2}[\d.]+ allowed\/s {2}[\d.]+ denied\/s .* redis up {2}fleet\n$/,
    )
    const top = await runInProcess(['top', '--count', '1', '--server', at(0)])
    expect(top.out).toContain(`ip:127.0.…  ${reference}`)
    const json = await runInProcess(['top', '--count', '1', '--json', '--server', at(0)])
    expect(JSON.parse(json.out)).toMatchObject({ violators: [{ handle: reference }] })
    const inspected = await runInProcess(['inspect', reference, '--server', at(1)])
    expect(inspected.code).toBe(0)
    expect(inspected.out).toContain(`ip:127.0.…, handle ${reference}`)
    expect(inspected.out).toMatch(/refused \d{4}-\d\d-\d\dT.*: limit-exceeded, tier\./)
    expect(inspected.out).not.toContain('127.0.0.1')
  })

  it('mistakes of watch and top are named', async () => {
    expect((await runInProcess(['watch', '--count', '0'])).err).toContain(
      '--count: expected a whole number from 1',
    )
    expect((await runInProcess(['top', '--redis', 'redis://127.0.0.1:1'])).err).toContain(
      '--redis: expected --server',
    )
    const unknown = await runInProcess(['inspect', 'aaaaaaaaaaaa', '--server', at(0)])
    expect(unknown.err).toContain('no subject of handle aaaaaaaaaaaa')
    expect((await runInProcess(['serve', '--demo', '--alert', 'nonsense=1'])).err).toContain(
      '--alert: expected',
    )
    const webhook = await runInProcess(['serve', '--demo', '--alert-webhook', 'https://hooks.example/secret'])
    expect(webhook.err).toContain('--alert-webhook: expected file:path or env:VARIABLE')
    expect(webhook.err).not.toContain('secret')
  })
})
