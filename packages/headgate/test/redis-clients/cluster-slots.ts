import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterNode, RedisCluster } from '../support/redis-cluster.ts'
import { openConnection, type RespConnection } from '../support/resp.ts'

/** Returns the slot of a subject's limits. */
export async function slotOf(connection: RespConnection, subject: string): Promise<number> {
  return Number(await connection.send('CLUSTER', 'KEYSLOT', `{${subject}}`))
}

/** Returns `count` subjects whose limits are on this node. */
export async function subjectsOn(node: ClusterNode, count: number, name: string): Promise<string[]> {
  const connection = await openConnection(node.port)
  const subjects: string[] = []
  for (let id = 0; subjects.length < count; id++) {
    const subject = `user:${name}-${id}`
    const slot = await slotOf(connection, subject)
    if (slot >= node.slots[0] && slot <= node.slots[1]) subjects.push(subject)
  }
  connection.close()
  return subjects
}

export interface Move {
  readonly from: ClusterNode
  readonly to: ClusterNode
  /** How long the keys of a slot stay apart. */
  readonly betweenKeysMs?: number
}

/** Moves slots from one primary to another while both serve, key by key, as `redis-cli --cluster reshard` does. */
export async function moveSlots(
  cluster: RedisCluster,
  slots: readonly number[],
  { from, to, betweenKeysMs = 0 }: Move,
): Promise<void> {
  const source = await openConnection(from.port)
  const target = await openConnection(to.port)
  const others = await Promise.all(
    cluster.primaries.filter(node => node !== from && node !== to).map(node => openConnection(node.port)),
  )
  for (const slot of slots) {
    await ok(target.send('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id))
    await ok(source.send('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id))
    for (;;) {
      const keys = await source.send('CLUSTER', 'GETKEYSINSLOT', slot, 10)
      if (!Array.isArray(keys) || keys.length === 0) break
      // One key at a time, so that the limits of a subject are on both sides for a while.
      for (const key of keys) {
        await ok(source.send('MIGRATE', to.host, to.port, String(key), 0, 1000))
        if (betweenKeysMs > 0) await sleep(betweenKeysMs)
      }
    }
    for (const connection of [target, source, ...others]) {
      await ok(connection.send('CLUSTER', 'SETSLOT', slot, 'NODE', to.id))
    }
  }
  for (const connection of [source, target, ...others]) connection.close()
}

async function ok(reply: Promise<unknown>): Promise<void> {
  const answer = await reply
  if (answer !== 'OK' && answer !== 'NOKEY') throw new Error(String(answer))
}
