import { fleetRecords } from 'headgate/internal'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { sendCommand } from '../../headgate/test/support/resp.ts'
import { createChanges } from '../src/admin/changes.js'
import { createRedisStore } from '../src/redis/connect.js'

let redis: RedisProcess
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis?.stop())

it('a change is one line of the log, whatever breaks an operator wrote into its reason', async () => {
  const lines: string[] = []
  const changes = createChanges(
    line => lines.push(line),
    null,
    () => 0,
  )
  await changes.add({ by: 'ada', what: 'set an override of user:1 for 1h: first\r\nbob reset everything' })
  expect(lines).toEqual(['ada set an override of user:1 for 1h: first bob reset everything'])
  expect((await changes.list()).changes).toHaveLength(1)
})

it('a trail that Redis has lost is shown and written back with its times, by whoever has read it', async () => {
  const lines: string[] = []
  const stores = [0, 1].map(() => createRedisStore({ url: redis.url }))
  for (const store of stores) await store.ready({ timeoutMs: 5_000 })
  const [one, other] = stores.map(store =>
    createChanges(
      line => lines.push(line),
      fleetRecords(store).changes,
      () => 0,
    ),
  ) as [ReturnType<typeof createChanges>, ReturnType<typeof createChanges>]
  await one.add({ by: 'ada', what: 'set control: limits off' })
  await other.add({ by: 'bob', what: 'reset user:42' })
  const { changes: before } = await one.list()
  expect(before.map(({ by }) => by)).toEqual(['bob', 'ada'])

  await sendCommand(redis.port, 'FLUSHALL')
  expect(await one.list()).toEqual({ scope: 'fleet', changes: before })
  await expect
    .poll(() => lines)
    .toContain('changes: 2 that were not in the audit trail in Redis are there again')
  const fresh = createChanges(
    () => {},
    fleetRecords(stores[1] as (typeof stores)[number]).changes,
    () => 0,
  )
  expect(await fresh.list()).toEqual({ scope: 'fleet', changes: before })
  // Nothing is written twice.
  expect(await other.list()).toEqual({ scope: 'fleet', changes: before })
  expect(await sendCommand(redis.port, 'LLEN', 'ratelimit:changes')).toBe(2)
  for (const changes of [one, other, fresh]) changes.close()
  for (const store of stores) await store.close()
})

it('a change that was made while Redis was away is in the trail when it is back', async () => {
  const store = createRedisStore({ url: redis.url })
  await store.ready({ timeoutMs: 5_000 })
  const changes = createChanges(() => {}, fleetRecords(store).changes, Date.now)
  redis.kill('SIGSTOP')
  await changes.add({ by: 'ada', what: 'set control: limits off' })
  expect(await changes.list()).toMatchObject({ scope: 'process', changes: [{ by: 'ada' }] })
  redis.kill('SIGCONT')
  await expect.poll(async () => (await changes.list()).scope).toBe('fleet')
  await expect
    .poll(
      async () =>
        (await fleetRecords(store).changes.read()).filter(({ what }) => what.includes('limits off')).length,
    )
    .toBeGreaterThan(0)
  changes.close()
  await store.close()
})
