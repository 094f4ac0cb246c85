import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askStore } from '../../src/store/ask-store.ts'
import { directRedisStore } from '../support/direct-store.ts'
import { type ClusterNode, type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'
import { waitUntil } from '../support/wait-until.ts'
import { subjectsOn } from './cluster-slots.ts'
import { one } from './questions.ts'
import { clusterClient, LIBRARIES } from './topologies.ts'

const ARGS = ['--cluster-require-full-coverage', 'no']

let cluster: RedisCluster
/** A primary without slots that was gone before any client could have reached it. */
let deadId: string
beforeAll(async () => {
  cluster = await startCluster({ primaries: 2, replicasPerPrimary: 0, args: ARGS })
  const dead = await startRedis({ args: ['--cluster-enabled', 'yes', ...ARGS] })
  deadId = String(await sendCommand(dead.port, 'CLUSTER', 'MYID'))
  for (const node of cluster.primaries) await sendCommand(node.port, 'CLUSTER', 'MEET', dead.host, dead.port)
  await waitUntil('the nodes know the third', async () => {
    const views = await Promise.all(
      cluster.primaries.map(({ port }) => sendCommand(port, 'CLUSTER', 'NODES')),
    )
    return views.every(view => String(view).includes(deadId))
  })
  await dead.stop()
})
afterAll(() => cluster.stop())

async function slotOf(node: ClusterNode, subject: string): Promise<number> {
  return Number(await sendCommand(node.port, 'CLUSTER', 'KEYSLOT', `{${subject}}`))
}

async function giveSlot(at: ClusterNode, slot: number, id: string): Promise<void> {
  expect(await sendCommand(at.port, 'CLUSTER', 'SETSLOT', slot, 'NODE', id)).toBe('OK')
}

describe.each(LIBRARIES)('with %s', library => {
  it(`a slot that moved to a never reached node is found again when the node comes back, with ${library}`, async () => {
    const [home] = cluster.primaries as [ClusterNode]
    const store = directRedisStore(clusterClient(cluster)(library).client, { deadlineMs: 100 })
    const [near, lost] = (await subjectsOn(home, 2, library)) as [string, string]
    await waitUntil('the store decides', async () => (await askStore(store, one(near))).charged === 0)

    const slot = await slotOf(home, lost)
    await giveSlot(home, slot, deadId)
    await expect(askStore(store, one(lost))).rejects.toThrow()

    await giveSlot(home, slot, home.id)
    await waitUntil('the store decides again', async () => (await askStore(store, one(lost))).charged === 0, {
      timeoutMs: 8_000,
    })
    await store.close()
  })
})
