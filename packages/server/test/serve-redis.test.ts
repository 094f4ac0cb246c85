import { afterEach, expect, test } from 'vitest'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { type HeadgateProcess, serveHeadgate } from './support/headgate-process.js'

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
