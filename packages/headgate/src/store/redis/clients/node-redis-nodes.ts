/**
 * Watches the connections of a node-redis cluster to its nodes. The client itself waits forever for a node that
 * accepts a connection and does not answer, and keeps dead connections.
 */
import { CONNECT_TIMEOUT_MS, silentDelayMs } from '../reconnect.js'
import type { ClusterNode, NodeRedisClient, NodeRedisCluster } from './node-redis-shape.js'

const LOOK_EVERY_MS = 1_000

interface Socket {
  readonly host: string
  readonly port: number
}

interface Watcher {
  /** Called when a connection can be used. */
  onReady(): void
  /** Called when no node can tell the topology. */
  onLost(): void
}

/**
 * Ends connections that are not greeted in time, asks the other nodes for the topology, and reconnects. A node that
 * refuses is looked for elsewhere, which the client does by itself only if it was connected once.
 */
export function watchNodes(cluster: NodeRedisCluster, { onReady, onLost }: Watcher): NodeRedisCluster {
  async function giveUp(node: ClusterNode): Promise<void> {
    disconnect(node)
    // The client rediscovers when connections are refused or lost. The connection to a frozen node is neither.
    if (!(await lookAround(cluster, node.address))) onLost()
    reconnect(cluster, node)
  }
  return cluster
    .on('node-connect', (socket: Socket) => {
      const timer = setTimeout(() => {
        const node = cluster.masters.find(({ client }) => isUngreeted(client, socket))
        if (node !== undefined) void giveUp(node)
      }, CONNECT_TIMEOUT_MS)
      timer.unref()
    })
    .on('node-ready', onReady)
    .on('node-reconnecting', ({ host, port }: Socket) => lookElsewhere(cluster, `${host}:${port}`, onLost))
}

const looking = new WeakSet<NodeRedisCluster>()

/**
 * Ends the connection to a node that stopped answering and makes a new one. A connection in progress is left alone,
 * but the other nodes are asked for the topology, because if the client's own search hangs, as at a frozen node, it
 * never searches again.
 */
export function replaceNode(cluster: NodeRedisCluster, address: string, onLost: () => void): void {
  const node = cluster.masters.find(master => master.address === address)
  if (node?.client?.isReady) {
    disconnect(node)
    reconnect(cluster, node)
    return
  }
  lookElsewhere(cluster, address, onLost)
}

/** Asks the other nodes for the topology, at most about once a second. */
function lookElsewhere(cluster: NodeRedisCluster, address: string, onLost: () => void): void {
  if (looking.has(cluster)) return
  looking.add(cluster)
  void lookAround(cluster, address).then(found => {
    if (!found) onLost()
    setTimeout(() => looking.delete(cluster), LOOK_EVERY_MS).unref()
  })
}

function isUngreeted(client: NodeRedisClient | undefined, { host, port }: Socket): boolean {
  const socket = client?.options?.socket
  const isSame = socket?.host === host && socket?.port === port
  return client !== undefined && isSame && client.isOpen && !client.isReady
}

/** Drops a connection. The cluster makes a new one when it next needs it. */
function disconnect(node: ClusterNode): void {
  const old = node.client
  node.client = undefined
  node.connectPromise = undefined
  old?.destroy()
}

/** Whether the other nodes told the topology in time. */
async function lookAround(cluster: NodeRedisCluster, silent: string): Promise<boolean> {
  const looked = cluster._slots?.rediscover?.(undefined, new Set([silent]))
  if (looked === undefined) return false
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>(resolve => {
    timer = setTimeout(() => resolve(false), 2 * CONNECT_TIMEOUT_MS)
  })
  const found = looked.then(
    () => true,
    () => false,
  )
  return Promise.race([found, late]).finally(() => clearTimeout(timer))
}

function reconnect(cluster: NodeRedisCluster, node: ClusterNode): void {
  const timer = setTimeout(() => {
    const isKnown = cluster.masters.includes(node)
    if (cluster.isOpen && isKnown) cluster.nodeClient(node).catch(() => {})
  }, silentDelayMs())
  timer.unref()
}
