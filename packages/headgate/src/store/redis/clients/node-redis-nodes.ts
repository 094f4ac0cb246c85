/**
 * The connections of a node-redis cluster to its nodes. The client itself waits for ever for a node that took a
 * connection and does not answer, and keeps a connection on which nothing arrives any more.
 */
import { CONNECT_TIMEOUT_MS, silentDelayMs } from '../reconnect.js'
import type { ClusterNode, NodeRedisClient, NodeRedisCluster } from './node-redis-shape.js'

const LOOK_EVERY_MS = 1_000

interface Socket {
  readonly host: string
  readonly port: number
}

interface Watcher {
  /** A connection can be used. */
  onReady(): void
  /** Nobody can be asked which node is where. */
  onLost(): void
}

/**
 * Ends connections that are not greeted in time, asks the other nodes for the way, and makes new ones. A node that
 * refuses is looked for elsewhere: the client does that by itself only where it has once been connected.
 */
export function watchNodes(cluster: NodeRedisCluster, { onReady, onLost }: Watcher): NodeRedisCluster {
  async function giveUp(node: ClusterNode): Promise<void> {
    disconnect(node)
    // The client looks again when connections are refused or lost. That of a frozen node is neither.
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
 * Ends the connection to a node that stopped answering and makes a new one. One that is being made is left alone, but the
 * others are asked for the way: a search of the client's own that hangs, as one at a
 * frozen node does, is the last it ever makes.
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

/** Asks the other nodes for the way, at most about once a second. */
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

/** The cluster makes a connection that it does not have when it is next asked for it. */
function disconnect(node: ClusterNode): void {
  const old = node.client
  node.client = undefined
  node.connectPromise = undefined
  old?.destroy()
}

/** Whether the other nodes have said in time which node is where. */
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
