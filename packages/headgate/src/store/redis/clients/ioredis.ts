import type { Cluster, ClusterOptions, Redis, RedisOptions } from 'ioredis'
import type { RedisConnection } from '../connection.js'
import { CONNECT_TIMEOUT_MS, reconnectDelayMs, silentDelayMs } from '../reconnect.js'
import { isReadOnly, TRYAGAIN_PAUSE_MS, YOUNG_MS } from '../script-runner.js'
import { slotOf } from '../slot.js'

/** A client of ioredis or a fork of it (iovalkey): single, sentinel or cluster. Recognised by its methods. */
export interface IoredisLike {
  readonly status: string
  defineCommand(...args: never[]): unknown
  duplicate(...args: never[]): unknown
}

/** Whether a client is one of ioredis or a fork of it. */
export function isIoredis(client: object): client is IoredisLike {
  return 'defineCommand' in client && 'status' in client && 'duplicate' in client
}

const DISCONNECT_TIMEOUT_MS = 20

/**
 * Options under which a lost reply is an error instead of a second charge. By default ioredis queues while it is
 * disconnected and resends unanswered commands, so that the script would run twice for one request.
 */
const SAFE_OPTIONS = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableAutoPipelining: false,
  connectTimeout: CONNECT_TIMEOUT_MS,
  // By default, closing waits two seconds for a server that does not confirm, and keeps the process alive.
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  retryStrategy: (attempt: number) => reconnectDelayMs(attempt),
  reconnectOnError: isReadOnly,
  lazyConnect: false,
  // Our own prefix names every key, whichever client is used.
  keyPrefix: '',
  readOnly: false,
} as const satisfies RedisOptions

/** With sentinels: use only the primary, and learn of a new one even while the old one is frozen. */
const SENTINEL_OPTIONS = {
  role: 'master',
  failoverDetector: true,
  sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
  sentinelRetryStrategy: (attempt: number) => reconnectDelayMs(attempt),
} as const satisfies RedisOptions

const CLUSTER_OPTIONS = {
  lazyConnect: false,
  keyPrefix: '',
  enableAutoPipelining: false,
  scaleReads: 'master',
  // Lets a command wait for the connection to a newly discovered node; `send` keeps the cluster's own queue empty.
  enableOfflineQueue: true,
  // 0 disables resending after a lost connection.
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  // TRYAGAIN means that nothing ran, because the keys of the script are being moved. The default would be to wait
  // 100 ms.
  retryDelayOnTryAgain: TRYAGAIN_PAUSE_MS,
  clusterRetryStrategy: (attempt: number) => reconnectDelayMs(attempt),
} as const satisfies ClusterOptions

/** Opens our own connection with the safe options, or uses the caller's client if it is shared. */
export function ioredisConnection(client: IoredisLike, shared: boolean, deadlineMs: number): RedisConnection {
  const given = client as unknown as Redis | Cluster
  let wasSilent = false
  let wasDemoted = false
  /**
   * Only a refusing server has to be spared. Behind one that became a replica, the new primary may already be
   * waiting.
   */
  function retryStrategy(attempt: number): number {
    const delayMs = wasDemoted ? 0 : wasSilent ? silentDelayMs() : reconnectDelayMs(attempt)
    wasSilent = false
    wasDemoted = false
    return delayMs
  }
  let isYoung = false
  function reconnectOnError(error: Error): boolean {
    const readOnly = isReadOnly(error)
    wasDemoted = readOnly && !isYoung
    return readOnly
  }
  const own = shared ? given : duplicate(given, { retryStrategy, reconnectOnError }, deadlineMs)
  let problem: string | undefined
  const note = (error: Error): void => {
    problem = error.message
    if ('code' in error && error.code === 'ETIMEDOUT') wasSilent = true
  }
  // Without a listener every lost connection would be printed; the failed calls report it anyway.
  if (!shared) own.on('error', note).on('node error', note)
  const listeners: (() => void)[] = []

  /** Not `disconnect`, which says goodbye first and waits two seconds for the answer. */
  function drop(node: Redis): void {
    wasSilent = true
    node.stream?.destroy()
  }

  /** The client's own timeout ends once the connection is made, even if nothing answers on it. */
  function watch(node: Redis): void {
    let timer: NodeJS.Timeout | undefined
    node
      .on('connect', () => {
        timer = setTimeout(() => node.status === 'connect' && drop(node), CONNECT_TIMEOUT_MS)
        timer.unref()
      })
      .on('ready', () => {
        clearTimeout(timer)
        isYoung = true
        timer = setTimeout(() => {
          isYoung = false
        }, YOUNG_MS)
        timer.unref()
        for (const listener of listeners) listener()
      })
      .on('close', () => clearTimeout(timer))
  }
  let closed = false

  /** News of a failover during an attempt to connect makes the client give up for good, so we reconnect. */
  function revive(client: Redis): void {
    client.on('end', () => {
      if (closed) return
      const timer = setTimeout(() => !closed && client.connect().catch(() => {}), reconnectDelayMs(1))
      timer.unref()
    })
  }
  if (!shared) {
    if (isCluster(own)) own.on('+node', watch)
    else {
      watch(own)
      revive(own)
    }
  }

  async function send<Reply>(command: () => Promise<Reply>): Promise<Reply> {
    if (!shared && own.isCluster && own.status !== 'ready') throw new Error('the cluster is not connected')
    return command()
  }

  return {
    cluster: own.isCluster,
    ready: () => whenReady(own),
    address: () => (isCluster(own) ? undefined : addressOf(own)),
    problem: () => problem,
    evalsha: (sha, keys, args) => send(() => own.evalsha(sha, keys.length, ...keys, ...args)),
    eval: (text, keys, args) => send(() => own.eval(text, keys.length, ...keys, ...args)),
    fcall: (name, keys, args) => send(() => own.fcall(name, keys.length, ...keys, ...args)),
    loadFunctions: code =>
      Promise.all(connectedPrimaries(own).map(node => node.call('FUNCTION', 'LOAD', 'REPLACE', code))),
    info: async () => String(await connectedPrimaries(own)[0]?.info()),
    nodeOf: key => (isCluster(own) ? (own.slots[slotOf(key)]?.[0] ?? '') : ''),
    replace(node) {
      // Sockets of a shared client belong to the caller. One that has not been greeted yet is already watched:
      // connected to a frozen server, it is first in line when the server thaws.
      const client = shared ? undefined : nodeNamed(own, node)
      if (client?.status === 'ready') drop(client)
    },
    onConnected: listener => void listeners.push(listener),
    async close() {
      closed = true
      if (!shared) own.disconnect()
    },
  }
}

function duplicate(
  client: Redis | Cluster,
  reconnecting: Required<Pick<RedisOptions, 'retryStrategy' | 'reconnectOnError'>>,
  deadlineMs: number,
): Redis | Cluster {
  if (!isCluster(client)) return client.duplicate({ ...SAFE_OPTIONS, ...SENTINEL_OPTIONS, ...reconnecting })
  return client.duplicate(undefined, {
    ...CLUSTER_OPTIONS,
    // Follows redirections and TRYAGAIN no longer than a call may take.
    maxRedirections: Math.max(4, Math.min(16, Math.floor(deadlineMs / TRYAGAIN_PAUSE_MS))),
    // A replica is connected when it is promoted, not before.
    redisOptions: { ...client.options.redisOptions, ...SAFE_OPTIONS, lazyConnect: true },
  } as Parameters<Cluster['duplicate']>[1])
}

function nodeNamed(client: Redis | Cluster, name: string): Redis | undefined {
  if (!isCluster(client)) return client
  return client.nodes('all').find(({ options }) => `${options.host}:${options.port}` === name)
}

function addressOf({ options: { path, host, port, sentinels, name } }: Redis): string {
  if (sentinels) return `primary ${name}`
  return path ?? `${host}:${port}`
}

function isCluster(client: Redis | Cluster): client is Cluster {
  return client.isCluster
}

function connectedPrimaries(client: Redis | Cluster): Redis[] {
  if (!isCluster(client)) return [client]
  const nodes = client.nodes('master').filter(node => node.status === 'ready')
  if (nodes.length === 0) throw new Error('no primary is connected')
  return nodes
}

async function whenReady(client: Redis | Cluster): Promise<void> {
  if (client.status !== 'ready') {
    await new Promise<void>(resolve => {
      client.once('ready', () => resolve())
      // A client made with lazyConnect connects at its first command, which would wait for this.
      if (client.status === 'wait') client.connect().catch(() => {})
    })
  }
  if (isCluster(client)) await Promise.allSettled(client.nodes('master').map(connectNode))
}

async function connectNode(node: Redis): Promise<void> {
  if (node.status === 'wait') await node.connect()
}
