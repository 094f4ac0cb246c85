// A primary is lost and a replica takes its place.
import { setTimeout as sleep } from 'node:timers/promises'
import { subjectsOn } from '../redis-clients/cluster-slots.ts'
import { countCharges } from '../redis-clients/server-count.ts'
import { clusterClient, sentinelClient, singleClient } from '../redis-clients/topologies.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { isReplicaInSync, readInfo } from '../support/redis-info.ts'
import { startRedis } from '../support/redis-process.ts'
import { startSentinel } from '../support/redis-sentinel.ts'
import { sendCommand } from '../support/resp.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'
import { anyOf, ms, openLimiterOn, openLoop } from './measure.mjs'
import { atMost, exactly, info, moreThan, share, time } from './rows.mjs'

const NODE_TIMEOUT_MS = 2_000
/** By default every node rejects everything while one shard has no primary, and then none would be healthy. */
const SERVE_ON = ['--cluster-require-full-coverage', 'no']
const SUBJECTS_PER_SHARD = 20

/** Returns the time from `fromMs` until the store, once lost, decided for these subjects again. */
function backAfterLossMs(results, subjects, fromMs) {
  const since = results.filter(({ subject, sentMs }) => sentMs >= fromMs && subjects.has(subject))
  since.sort((a, b) => a.sentMs - b.sentMs)
  const lost = since.findIndex(({ source }) => source !== 'redis')
  const back = since.find(({ source }, index) => index > lost && source === 'redis')
  if (lost === -1) return 0
  return back === undefined ? Number.POSITIVE_INFINITY : back.doneMs - fromMs
}

/** Kills or freezes a random primary under load, round by round, each until it is back as a replica. */
export async function clusterFailover(library, { long, rounds = long ? 20 : 5 }) {
  const cluster = await startCluster({ nodeTimeoutMs: NODE_TIMEOUT_MS, args: SERVE_ON })
  const shards = await Promise.all(
    cluster.primaries.map(async (primary, index) => ({
      nodes: [primary, cluster.replicas[index]],
      subjects: new Set(await subjectsOn(primary, SUBJECTS_PER_SHARD, 'failover')),
    })),
  )
  const opened = await openLimiterOn(clusterClient(cluster)(library).client)
  const everybody = shards.flatMap(({ subjects }) => [...subjects])
  const loop = openLoop(opened, 400, { policy: 'countable', pick: anyOf(everybody) })
  await sleep(1_000)
  const outages = []
  const restarted = []
  for (let round = 0; round < rounds; round++) {
    const shard = shards[Math.floor(Math.random() * shards.length)]
    const isKill = round % 2 === 0
    const victim = await primaryOf(shard)
    const fromMs = performance.now()
    const settledBefore = loop.results.length
    victim.kill(isKill ? 'SIGKILL' : 'SIGSTOP')
    await waitUntil(
      'the shard decides again',
      () => {
        // Only the latest: scanning all of it each time would delay the decisions being timed.
        const since = loop.results.slice(settledBefore)
        const backMs = backAfterLossMs(since, shard.subjects, fromMs)
        return backMs > 0 && Number.isFinite(backMs)
      },
      { timeoutMs: 30_000 },
    )
    outages.push({ shard, fromMs, toMs: performance.now() })
    await sleep(500)
    if (isKill) restarted.push(await restart(shard, victim))
    else victim.kill('SIGCONT')
    // A cluster that does not heal by itself ends the rounds; the report says so.
    if (!(await settled(shards))) break
  }
  const { results, rejected } = await loop.stop()
  await opened.close()
  const primaries = await Promise.all(shards.map(primaryOf))
  const counts = await countCharges(primaries.map(({ port }) => port))
  await Promise.all(restarted.map(node => node.stop()))
  await cluster.stop()
  const healthy = outages.flatMap(({ shard, fromMs, toMs }) =>
    results.filter(
      ({ subject, sentMs }) => sentMs >= fromMs && sentMs < toMs && !shard.subjects.has(subject),
    ),
  )
  const backMs = outages.map(({ shard, fromMs }) => backAfterLossMs(results, shard.subjects, fromMs))
  return [
    { ...exactly('rounds, killed and frozen in turn', outages.length, rounds), timing: true },
    atMost('calls that threw', rejected, 0),
    time('longest until the shard was back', Math.max(...backMs), NODE_TIMEOUT_MS + 4_000),
    share(
      'decided by Redis on the other shards',
      healthy.filter(({ source }) => source === 'redis').length,
      healthy.length,
      99.9,
    ),
    // Seven servers share the cores with this process; its own delay is reported below.
    info('longest decision', ms(Math.max(...results.map(result => result.ms)))),
    atMost('subjects charged more often than they asked', overcharged(counts, results), 0),
  ]
}

function overcharged(counts, results) {
  const asked = new Map()
  for (const { subject } of results) asked.set(subject, (asked.get(subject) ?? 0) + 1)
  return [...counts].filter(([key, count]) => {
    const subject = /\{(user:[^}]+)\}:global:countable/.exec(key)?.[1]
    return subject !== undefined && count > (asked.get(subject) ?? 0)
  }).length
}

async function primaryOf({ nodes }) {
  for (const node of nodes) {
    const role = await sendCommand(node.port, 'ROLE').catch(() => [])
    if (role[0] === 'master') return node
  }
  throw new Error('the shard has no primary')
}

/** Restarts a node where it was, with what it knew of the cluster. */
async function restart(shard, victim) {
  await victim.exited
  const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(NODE_TIMEOUT_MS), ...SERVE_ON]
  const { dir } = victim
  // Keeps its folder, which holds its identity, because it may have to be restarted once more.
  const node = { ...(await startRedis({ port: victim.port, args: [...args, '--dir', dir] })), dir }
  shard.nodes = shard.nodes.map(each => (each === victim ? node : each))
  return node
}

/** Whether every shard is complete again in time. */
async function settled(shards) {
  return waitUntil(
    'every shard has a primary and a replica in sync',
    async () => {
      for (const { nodes } of shards) {
        const roles = await Promise.all(nodes.map(({ port }) => readInfo(port, 'INFO', 'replication')))
        const state = await Promise.all(nodes.map(({ port }) => readInfo(port, 'CLUSTER', 'INFO')))
        const replica = nodes[roles.findIndex(({ role }) => role === 'slave')]
        if (state.some(each => each.cluster_state !== 'ok')) return false
        if (replica === undefined || !(await isReplicaInSync(replica.port))) return false
      }
      return true
    },
    { timeoutMs: 30_000 },
  ).then(
    () => true,
    () => false,
  )
}

/** Kills or freezes the primary behind sentinels. */
export async function sentinelFailover(library, { signals = ['SIGKILL', 'SIGSTOP'] }) {
  const rows = []
  for (const signal of signals) {
    const setup = await startSentinel({ downAfterMs: 1_000 })
    const opened = await openLimiterOn(sentinelClient(setup)(library).client)
    const subjects = new Set(Array.from({ length: 20 }, (_, id) => `user:${id}`))
    const loop = openLoop(opened, 400, { policy: 'countable', pick: anyOf([...subjects]) })
    await sleep(1_000)
    const fromMs = performance.now()
    setup.primary.kill(signal)
    const promotion = promotedAfterMs(setup.replicas, fromMs)
    await sleep(8_000)
    const { results, rejected } = await loop.stop()
    const counts = await countCharges(setup.replicas.map(({ port }) => port))
    await opened.close()
    const promotedMs = await promotion
    await setup.stop()
    rows.push(
      info(`${signal}: until the sentinels had promoted a replica`, ms(promotedMs)),
      atMost(`${signal}: calls that threw`, rejected, 0),
      time(`${signal}: until the next primary decided`, backAfterLossMs(results, subjects, fromMs), 6_000),
      atMost(`${signal}: subjects charged more often than they asked`, overcharged(counts, results), 0),
    )
  }
  return rows
}

async function promotedAfterMs(replicas, fromMs) {
  while (performance.now() - fromMs < 10_000) {
    for (const { port } of replicas) {
      const role = await sendCommand(port, 'ROLE').catch(() => [])
      if (role[0] === 'master') return performance.now() - fromMs
    }
    await sleep(20)
  }
  return Number.POSITIVE_INFINITY
}

const LIMIT = 50

/** Kills a primary whose replica has missed the last two seconds and takes its place. */
export async function lostWrites(library) {
  const primary = await startRedis()
  const link = await startTcpProxy({ port: primary.port })
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(link.port)] })
  await waitUntil('the replica is in sync', () => isReplicaInSync(replica.port))
  const front = await startTcpProxy({ port: primary.port })
  // Longer than the default, to measure the cost of the failover, not of a busy machine.
  const opened = await openLimiterOn(singleClient(front.port)(library).client, { deadlineMs: 1_000 })
  const subjects = Array.from({ length: 20 }, (_, id) => `user:${id}`)
  const loop = openLoop(opened, 1_000, { policy: 'replicated', pick: anyOf(subjects) })
  await sleep(500)
  link.blackhole()
  await sleep(2_000)
  primary.kill('SIGKILL')
  await front.close()
  await sendCommand(replica.port, 'REPLICAOF', 'NO', 'ONE')
  const again = await startTcpProxy({ port: replica.port, listenOn: front.port })
  await sleep(4_000)
  const { results, rejected } = await loop.stop()
  const { lostWrites } = opened.store.health()
  await opened.close()
  const admitted = new Map(subjects.map(subject => [subject, 0]))
  for (const { subject, allowed } of results) if (allowed) admitted.set(subject, admitted.get(subject) + 1)
  await Promise.all([again.close(), link.close(), primary.stop(), replica.stop()])
  const most = Math.max(...admitted.values())
  return [
    atMost('calls that threw', rejected, 0),
    atMost('most admitted of one subject above its limit of 50', most - LIMIT, LIMIT),
    info(
      'admitted above the limit, all 20 together',
      [...admitted.values()].reduce((sum, n) => sum + n - LIMIT, 0),
    ),
    moreThan('lostWrites noticed', lostWrites, 0),
  ]
}
