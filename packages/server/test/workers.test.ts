import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import type { ShownFleet } from '../src/observe/fleet.js'
import { envoyClient } from './support/envoy-client.js'
import { type HeadgateProcess, serveHeadgateIn } from './support/headgate-process.js'
import { startRawUpstream } from './support/raw-upstream.js'
import { runInProcess } from './support/run-in-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-workers-'))
const policyFile = join(folder, 'headgate.yaml')
const ratelimitFile = join(folder, 'ratelimit.yaml')
const running: HeadgateProcess[] = []
let redis: RedisProcess
let headgate: HeadgateProcess

const contentOf = (limit: number) => `
trustedProxies: [127.0.0.1]
policies: { api: [{ algorithm: sliding-window-log, limit: ${limit}, window: 1m }] }
default: { policy: api }
`
const RATELIMIT = `
domain: edge
descriptors: [{ key: ip, rate_limit: { unit: minute, requests_per_unit: 3 } }]
`

beforeAll(async () => {
  redis = await startRedis()
  writeFileSync(policyFile, contentOf(25))
  writeFileSync(ratelimitFile, RATELIMIT)
  const envoy = ['--ratelimit-config', ratelimitFile, '--grpc-port', '0']
  headgate = await serve({ HEADGATE_WORKERS: '2' }, '--demo', ...envoy)
}, 60_000)
afterAll(async () => {
  for (const { child } of running) child.kill('SIGKILL')
  await redis.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function serve(env: Record<string, string>, ...args: string[]): Promise<HeadgateProcess> {
  const started = await serveHeadgateIn({ env }, '--config', policyFile, '--redis', redis.url, ...args)
  running.push(started)
  return started
}

/**
 * Returns the statuses of a client's requests, on a connection of its own each, which go to the workers in turn.
 */
async function statusesOf(client: string, count: number): Promise<number[]> {
  const statuses: number[] = []
  for (let index = 0; index < count; index++) {
    const headers = { Connection: 'close', 'X-Forwarded-For': client }
    const answer = await fetch(headgate.gatewayUrl, { headers })
    await answer.text()
    statuses.push(answer.status)
  }
  return statuses
}

const statusOf = (url: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { agent: false }, answer => resolve(answer.resume().statusCode))
    sent.on('error', reject).end()
  })

const metricOf = async (adminUrl: string, name: string): Promise<number> => {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
}

const readiness = async (adminUrl: string) => {
  const answer = await fetch(`${adminUrl}/readyz`)
  return { code: answer.status, ...((await answer.json()) as object) }
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
}

it('workers share the limits and the port, and the admin port speaks for all of them', async () => {
  const { adminUrl, stdout } = headgate
  expect(stdout()).toMatch(/limits shared through Redis, 2 workers$/m)
  const statuses = await statusesOf('192.0.2.10', 30)
  expect(statuses.filter(status => status === 200)).toHaveLength(25)
  const deniedBy = () =>
    new Set([...stdout().matchAll(/^(worker \d): 429 for/gm)].map(([, worker]) => worker))
  await expect.poll(deniedBy).toEqual(new Set(['worker 1', 'worker 2']))

  await expect.poll(() => metricOf(adminUrl, 'rate_limit_allowed_total')).toBe(25)
  await expect.poll(() => metricOf(adminUrl, 'rate_limit_blocked_total')).toBe(5)
  const upstream = /rate_limit_upstream_requests_total\{upstream="[^"]+",status="2xx"\} (\d+)/g
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  const forwarded = [...text.matchAll(upstream)].map(([, count]) => Number(count))
  expect(forwarded.reduce((sum, count) => sum + count, 0)).toBe(25)

  await expect
    .poll(async () => (await (await fetch(`${adminUrl}/v1/stats`)).json()) as object)
    .toMatchObject({ totals: { allowed: 25, denied: 5 }, processes: { live: 3 } })
  const fleetOf = async () => (await (await fetch(`${adminUrl}/v1/fleet`)).json()) as ShownFleet
  // What a process says of itself comes with its second report.
  await expect
    .poll(async () => (await fleetOf()).processes.filter(one => (one.rssBytes ?? 0) > 10_000_000), {
      timeout: 5_000,
    })
    .toHaveLength(3)
  await expect
    .poll(fleetOf)
    .toMatchObject({ scope: 'fleet', live: 3, upstreams: expect.arrayContaining([expect.anything()]) })
  const fleet = await fleetOf()
  expect(new Set(fleet.processes.map(({ configVersion }) => configVersion)).size).toBe(1)
  const tried = await fetch(`${adminUrl}/v1/policy/try`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ text: contentOf(10) }),
  })
  expect(await tried.json()).toMatchObject({
    replay: { requests: 30, before: { denied: 5 }, after: { denied: 20 } },
  })
  expect(await readiness(adminUrl)).toEqual({
    code: 200,
    status: 'ok',
    config: 'current',
    rejectedConfigs: 0,
    workers: { ready: 2, wanted: 2 },
  })
})

it('a worker that is killed is missed by readiness, replaced, and what it counted stays counted', async () => {
  const { adminUrl, child, stdout } = headgate
  const before = await metricOf(adminUrl, 'rate_limit_allowed_total')
  await statusesOf('192.0.2.11', 10)
  await expect.poll(() => metricOf(adminUrl, 'rate_limit_allowed_total')).toBe(before + 10)
  process.kill(childrenOf(child.pid as number)[0] as number, 'SIGKILL')
  await expect
    .poll(() => readiness(adminUrl), { interval: 5 })
    .toMatchObject({
      code: 503,
      status: 'incomplete',
      workers: { ready: 1, wanted: 2 },
    })
  expect(await statusesOf('192.0.2.11', 2)).toEqual([200, 200])
  await expect.poll(() => readiness(adminUrl)).toMatchObject({ code: 200 })
  expect(stdout()).toMatch(/^worker \d ended by SIGKILL; another is started in 100 ms$/m)
  expect(await statusesOf('192.0.2.11', 4)).toEqual([200, 200, 200, 200])
  await expect.poll(() => metricOf(adminUrl, 'rate_limit_allowed_total')).toBe(before + 16)
})

it('a changed file reaches every worker, on SIGHUP or by itself', async () => {
  const { stdout, child } = headgate
  writeFileSync(policyFile, contentOf(4))
  child.kill('SIGHUP')
  const told = () => [...stdout().matchAll(/^(worker \d: )?\S*headgate\.yaml: reloaded$/gm)]
  await expect.poll(() => new Set(told().map(([, worker]) => worker)).size).toBe(3)
  expect(await statusesOf('192.0.2.12', 6)).toEqual([200, 200, 200, 200, 429, 429])
})

it('SIGTERM lets every worker finish what is in flight, and readiness says so first', async () => {
  const upstream = await startRawUpstream()
  upstream.fallSilent()
  const { gatewayUrl, adminUrl, end } = await serve({}, '--workers', '2', '--upstream', upstream.url)
  const asked = Array.from({ length: 4 }, () => statusOf(gatewayUrl))
  await expect.poll(() => upstream.received.length).toBe(4)
  const began = performance.now()
  const ended = end('SIGTERM')
  await expect.poll(() => readiness(adminUrl)).toMatchObject({ code: 503, status: 'stopping' })
  await expect.poll(() => fetch(gatewayUrl).catch(() => null)).toBeNull()
  for (const socket of upstream.sockets) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  expect(await Promise.all(asked)).toEqual([200, 200, 200, 200])
  expect((await ended).code).toBe(0)
  expect(performance.now() - began).toBeLessThan(5_500)
  await upstream.close()
})

it('Envoy is answered by the workers', async () => {
  const address = /Envoy gRPC +(\S+)/.exec(headgate.stdout())?.[1] as string
  const codes: unknown[] = []
  for (let index = 0; index < 4; index++) {
    const client = envoyClient(address)
    const descriptors = [{ entries: [{ key: 'ip', value: '1' }] }]
    codes.push((await client.ask({ domain: 'edge', descriptors })).overall_code)
    client.close()
  }
  expect(codes).toEqual(['OK', 'OK', 'OK', 'OVER_LIMIT'])
})

it('Ctrl-C ends all of them', async () => {
  const { code, stderr, stdout } = await headgate.end('SIGINT')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/\nstopped\n$/)
})

it.each([
  ['--workers', '2'],
  ['--workers', '0'],
  ['--workers', 'many'],
])('%s %s without Redis is rejected', async (...args) => {
  const { code, err } = await runInProcess(['serve', '--demo', ...args])
  expect(code).toBe(2)
  expect(err).toContain('--workers')
})
