// Slots move from node to node under load.
import { setTimeout as sleep } from 'node:timers/promises'
import { slotOf } from '../../dist/store/redis/slot.js'
import { moveSlots } from '../redis-clients/cluster-slots.ts'
import { countCharges } from '../redis-clients/server-count.ts'
import { clusterClient } from '../redis-clients/topologies.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { readInfo } from '../support/redis-info.ts'
import { anyOf, openLimiterOn, openLoop, percentile } from './measure.mjs'
import { atMost, info, moreThan, time } from './rows.mjs'

const SLOTS = 1_500
const RPS = 600
const SUBJECTS = 150
const BETWEEN_KEYS_MS = 10

/** There and back again, so that each move has as many keys as the first. */
export async function resharding(library, { quick, rounds = quick ? 1 : 5, slots = SLOTS }) {
  const cluster = await startCluster({ replicasPerPrimary: 0 })
  const [first, second] = cluster.primaries
  // Longer than the default, to measure how long it takes, not whether the fallback is in time.
  const opened = await openLimiterOn(clusterClient(cluster)(library).client, { deadlineMs: 1_000 })
  const moving = Array.from({ length: slots }, (_, index) => first.slots[0] + index)
  const loop = openLoop(opened, RPS, { policy: 'twoKeys', pick: anyOf(subjectsIn(moving)) })
  await sleep(1_000)
  for (let round = 0; round < rounds; round++) {
    const [from, to] = round % 2 === 0 ? [first, second] : [second, first]
    await moveSlots(cluster, moving, { from, to, betweenKeysMs: BETWEEN_KEYS_MS })
  }
  const { results, rejected } = await loop.stop()
  await opened.close()
  const counts = await countCharges(cluster.primaries.map(({ port }) => port))
  const rejections = await rejectionsOf(cluster.primaries)
  await cluster.stop()
  const charged = [...counts].filter(([key]) => key.includes(':twoKeys.')).reduce((sum, [, n]) => sum + n, 0)
  const byRedis = results.filter(({ source }) => source === 'redis').length
  const took = results.map(result => result.ms)
  return [
    info('slots moved', `${rounds} × ${slots}`),
    atMost('calls that threw', rejected, 0),
    atMost('calls not decided by Redis', results.length - byRedis, 0),
    atMost('charges lost', Math.max(0, 2 * byRedis - charged), 0),
    atMost('charges made twice', Math.max(0, charged - 2 * results.length), 0),
    time('p99', percentile(took, 99), 50),
    info('longest', `${Math.max(...took).toFixed(0)} ms`),
    ...['MOVED', 'ASK', 'TRYAGAIN'].map(reply => moreThan(`${reply} replies`, rejections.get(reply) ?? 0, 0)),
  ]
}

/** Returns subjects whose limits are in these slots. */
function subjectsIn(slots) {
  const wanted = new Set(slots)
  const subjects = []
  for (let id = 0; subjects.length < SUBJECTS; id++) {
    const subject = `user:moving-${id}`
    if (wanted.has(slotOf(`{${subject}}`))) subjects.push(subject)
  }
  return subjects
}

/** Returns the errors that the servers have counted. */
async function rejectionsOf(nodes) {
  const counts = new Map()
  for (const { port } of nodes) {
    for (const [name, value] of Object.entries(await readInfo(port, 'INFO', 'errorstats'))) {
      const reply = name.replace('errorstat_', '')
      counts.set(reply, (counts.get(reply) ?? 0) + Number(value.replace('count=', '')))
    }
  }
  return counts
}
