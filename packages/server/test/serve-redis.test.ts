import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import { afterEach, expect, test } from 'vitest'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { type HeadgateProcess, serveHeadgate, serveHeadgateIn } from './support/headgate-process.js'

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

test('two gateways on one Redis share the limits, and decide without it when it is gone', async () => {
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

test('Redis may be named in the environment, and its keys by the policy file', async () => {
  redis = await startRedis()
  const folder = mkdtempSync(join(tmpdir(), 'headgate-redis-'))
  writeFileSync(join(folder, 'headgate.yaml'), 'prefix: shop\ntenant: eu\n')
  const env = {
    ENABLE_DISTRIBUTED_RATE_LIMITING: 'on',
    RATE_LIMIT_REDIS_URL: redis.url,
    RATE_LIMIT_GLOBAL_CAPACITY: '3',
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
    expect(keys).toEqual(['shop:v1:{eu/ip:127.0.0.1}:global:global.bucket'])
    expect((await gateway.end('SIGTERM')).code).toBe(0)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
