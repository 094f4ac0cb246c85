import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'headgate/config'
import { createClient } from 'redis'
import { afterEach, expect, it } from 'vitest'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { sendCommand } from '../../headgate/test/support/resp.ts'
import { waitUntil } from '../../headgate/test/support/wait-until.ts'
import { withService } from '../src/cli/fleet.js'
import { type HeadgateProcess, serveHeadgate, serveHeadgateIn } from './support/headgate-process.js'
import { runInProcess } from './support/run-in-process.js'

const running: HeadgateProcess[] = []
let redis: RedisProcess | undefined
afterEach(async () => {
  for (const { child } of running.splice(0)) child.kill('SIGKILL')
  await redis?.stop()
})

async function serve(url: string): Promise<HeadgateProcess> {
  const gateway = await serveHeadgate('--demo', '--redis', url)
  running.push(gateway)
  return gateway
}

it('two gateways on one Redis share the limits, and decide without it when it is gone', async () => {
  redis = await startRedis()
  const gateways = [await serve(redis.url), await serve(redis.url)]
  expect(gateways[0]?.stdout()).toContain('limits shared through Redis')

  const statuses: number[] = []
  for (let index = 0; index < 30; index++) {
    statuses.push((await fetch(`${gateways[index % 2]?.gatewayUrl}/`)).status)
  }
  expect(statuses.filter(status => status === 200).length).toBe(20)

  redis.kill('SIGKILL')
  await redis.exited
  for (const { gatewayUrl } of gateways) expect([200, 429]).toContain((await fetch(`${gatewayUrl}/`)).status)
  for (const { end } of gateways) expect((await end('SIGTERM')).code).toBe(0)
})

it('a server that listens has its first requests decided by Redis', async () => {
  redis = await startRedis()
  const { gatewayUrl } = await serve(`redis://127.0.0.1:${redis.port}`)
  expect((await fetch(gatewayUrl)).status).toBe(200)
  await expect
    .poll(() => sendCommand(redis?.port as number, 'KEYS', 'ratelimit:v2:{ip:127.0.0.1}:*'))
    .not.toEqual([])
})

it('a Redis that is away holds nobody up, and the first line says so', async () => {
  const { gatewayUrl, stdout, end } = await serve('redis://127.0.0.1:9')
  expect(stdout()).toMatch(/, limits shared through Redis, which has not answered yet: /)
  expect((await fetch(gatewayUrl)).status).toBe(200)
  expect((await end('SIGTERM')).code).toBe(0)
})

it('Redis may be named in the environment, and its keys by the policy file', async () => {
  redis = await startRedis()
  const folder = mkdtempSync(join(tmpdir(), 'headgate-redis-'))
  writeFileSync(join(folder, 'headgate.yaml'), 'prefix: shop\ntenant: eu\n')
  const env = {
    ENABLE_DISTRIBUTED_RATE_LIMITING: 'on',
    RATE_LIMIT_REDIS_URL: redis.url,
    RATE_LIMIT_GLOBAL_CAPACITY: '3',
    HEADGATE_DEADLINE: '2000',
  }
  try {
    const gateway = await serveHeadgateIn({ cwd: folder, env }, '--demo')
    running.push(gateway)
    expect(gateway.stdout()).toContain('limits shared through Redis')
    const statuses: number[] = []
    for (let index = 0; index < 4; index++) statuses.push((await fetch(gateway.gatewayUrl)).status)
    expect(statuses).toEqual([200, 200, 200, 429])
    const client = await createClient({ url: redis.url }).connect()
    const keys = await client.keys('*global.bucket')
    client.destroy()
    expect(keys).toEqual(['shop:v2:{eu/ip:127.0.0.1}:global:global.bucket'])
    expect((await gateway.end('SIGTERM')).code).toBe(0)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

it('a gateway counts as a process of its service, and a command as none of them', async () => {
  redis = await startRedis()
  const folder = mkdtempSync(join(tmpdir(), 'headgate-service-'))
  const config = join(folder, 'headgate.yaml')
  writeFileSync(config, 'service: shop\n')
  const { port, url } = redis
  const services = async () => {
    const members = (await sendCommand(port, 'ZRANGE', 'ratelimit:fleet', 0, -1)) as string[]
    return members.map(member => member.split('/')[0]).sort()
  }
  try {
    running.push(await serveHeadgate('--config', config, '--demo', '--redis', url))
    await waitUntil('the gateway has said that it is there', async () => (await services()).join() === 'shop')
    running.push(await serveHeadgate('--config', config, '--demo', '--redis', url, '--service', 'billing'))
    const { code } = await runInProcess(['control', 'get', '--redis', url, '--config', config])
    expect(code).toBe(0)
    await waitUntil('both are there', async () => (await services()).length >= 2)
    expect(await services()).toEqual(['billing', 'shop'])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

it.each<[string | undefined, Record<string, string>, string | undefined, string | undefined]>([
  ['flag', { HEADGATE_SERVICE: 'environment' }, 'file', 'flag'],
  [undefined, { HEADGATE_SERVICE: 'environment' }, 'file', 'environment'],
  [undefined, { HEADGATE_SERVICE: '' }, 'file', 'file'],
  [undefined, {}, undefined, undefined],
])(
  'the service of --service %s, the environment %j and the file, which says %s, is %s',
  (flag, environment, file, expected) => {
    const config = defineConfig(file === undefined ? {} : { service: file })
    expect(withService(config, flag, environment).service).toBe(expected)
  },
)
