import { startFleet, stopFleet } from './redis-fleet.ts'
import { isReplicaInSync, readInfo } from './redis-info.ts'
import { type RedisProcess, startRedis } from './redis-process.ts'
import { type Reply, sendCommand } from './resp.ts'
import { waitUntil } from './wait-until.ts'

const SLOTS = 16_384

export interface ClusterOptions {
  readonly primaries?: number
  readonly replicasPerPrimary?: number
  /** How long a node may be silent before the others consider it down. */
  readonly nodeTimeoutMs?: number
  /** Further settings for every node. */
  readonly args?: readonly string[]
}

/** The role is the one at start: a failover changes it in Redis, not here. */
export interface ClusterNode extends RedisProcess {
  readonly id: string
  readonly role: 'primary' | 'replica'
  /** For a primary, the slots it began with; for a replica, those of its primary. Both ends included. */
  readonly slots: readonly [first: number, last: number]
}

export interface RedisCluster {
  readonly nodes: readonly ClusterNode[]
  readonly primaries: readonly ClusterNode[]
  readonly replicas: readonly ClusterNode[]
  stop(): Promise<void>
}

/** Starts a real Redis Cluster. Resolves once every node serves every slot and every replica holds its data. */
export async function startCluster(options: ClusterOptions = {}): Promise<RedisCluster> {
  const { primaries = 3, replicasPerPrimary = 1, nodeTimeoutMs = 2000, args = [] } = options
  const settings = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs)]
  // CLUSTER SLOTS hides a replica until something was replicated to it. In an empty cluster that is the primary's
  // first ping, which by default comes after 10 s.
  settings.push('--repl-ping-replica-period', '1', ...args)
  const servers = await startFleet(primaries * (1 + replicasPerPrimary), () => startRedis({ args: settings }))
  try {
    const nodes = await Promise.all(servers.map((server, index) => describe(server, index, primaries)))
    await introduce(nodes)
    await assign(nodes, primaries)
    await settle(nodes, replicasPerPrimary)
    return {
      nodes,
      primaries: nodes.filter(node => node.role === 'primary'),
      replicas: nodes.filter(node => node.role === 'replica'),
      stop: () => stopFleet(servers),
    }
  } catch (error) {
    await stopFleet(servers)
    throw error
  }
}

/** The first `primaries` servers become primaries; the rest are distributed among them in turn. */
async function describe(server: RedisProcess, index: number, primaries: number): Promise<ClusterNode> {
  const shard = index % primaries
  const first = Math.floor((shard * SLOTS) / primaries)
  const last = Math.floor(((shard + 1) * SLOTS) / primaries) - 1
  return {
    ...server,
    id: String(await sendCommand(server.port, 'CLUSTER', 'MYID')),
    role: index < primaries ? 'primary' : 'replica',
    slots: [first, last],
  }
}

/** Each node meets every other one. Gossip would spread the news from a single node, but takes seconds. */
async function introduce(nodes: readonly ClusterNode[]): Promise<void> {
  // Distinct epochs, given before the nodes meet, spare the cluster from settling who is older.
  for (const [index, node] of nodes.entries()) {
    await command(node, 'CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1))
  }
  for (const [index, node] of nodes.entries()) {
    for (const other of nodes.slice(index + 1)) {
      await command(node, 'CLUSTER', 'MEET', other.host, String(other.port))
    }
  }
  await waitUntil('all cluster nodes know each other', async () => {
    const views = await Promise.all(nodes.map(node => sendCommand(node.port, 'CLUSTER', 'NODES')))
    return views.every(view => nodes.every(node => String(view).includes(node.id)))
  })
}

async function assign(nodes: readonly ClusterNode[], primaries: number): Promise<void> {
  for (const [index, node] of nodes.entries()) {
    const [first, last] = node.slots
    const primary = nodes[index % primaries]
    if (node.role === 'replica' && primary) {
      await command(node, 'CLUSTER', 'REPLICATE', primary.id)
    } else {
      // ADDSLOTSRANGE would be shorter, but Redis 6 does not have it.
      const slots = Array.from({ length: last - first + 1 }, (_, offset) => String(first + offset))
      await command(node, 'CLUSTER', 'ADDSLOTS', ...slots)
    }
  }
}

async function settle(nodes: readonly ClusterNode[], replicasPerPrimary: number): Promise<void> {
  await waitUntil('the cluster is complete in the eyes of every node', async () => {
    const verdicts = await Promise.all(
      nodes.map(async node => {
        const info = await readInfo(node.port, 'CLUSTER', 'INFO')
        const ranges = await sendCommand(node.port, 'CLUSTER', 'SLOTS')
        const synced = node.role === 'primary' || (await isReplicaInSync(node.port))
        return synced && info.cluster_state === 'ok' && listsReplicas(ranges, replicasPerPrimary)
      }),
    )
    return verdicts.every(Boolean)
  })
}

/** A range is [first slot, last slot, primary, replica…]. Clients learn the replicas from here. */
function listsReplicas(ranges: Reply, replicasPerPrimary: number): boolean {
  return (
    Array.isArray(ranges) &&
    ranges.every(range => Array.isArray(range) && range.length === 3 + replicasPerPrimary)
  )
}

async function command(node: ClusterNode, ...args: string[]): Promise<void> {
  const reply = await sendCommand(node.port, ...args)
  if (reply !== 'OK') throw new Error(`${args.slice(0, 3).join(' ')} on port ${node.port}: ${String(reply)}`)
}
