import { CONNECT_TIMEOUT_MS } from '../reconnect.js'
import { slotOf } from '../slot.js'
import { clientOptions } from './client-options.js'
import { areSoonDone, type LibraryClient } from './own-connection.js'

/**
 * A client, cluster or sentinel of node-redis. Recognised by its methods, because its types differ with its
 * modules.
 */
export interface NodeRedisLike {
  evalSha(...args: never[]): Promise<unknown>
  fCall(...args: never[]): Promise<unknown>
  duplicate(...args: never[]): unknown
}

/** Whether a client is one of node-redis. */
export function isNodeRedis(client: object): client is NodeRedisLike {
  return 'evalSha' in client && 'fCall' in client && 'duplicate' in client
}

/** Whether it is of a version whose options cannot be read, so that no safe duplicate can be made. */
export function isNodeRedis4(client: object): boolean {
  return isNodeRedis(client) && !('withCommandOptions' in client)
}

/*
 * The part of node-redis that is used, written out. Its own types cover every command and module: checking a union
 * of them took the compiler a minute and two gigabytes.
 */

interface Common {
  readonly isOpen: boolean
  duplicate(overrides?: object): unknown
  withCommandOptions(options: object): unknown
  connect(): Promise<unknown>
  destroy(): unknown
  on(event: string, listener: (...args: never[]) => void): this
  once(event: string, listener: (...args: never[]) => void): this
}

interface Single extends Common {
  readonly isReady: boolean
  readonly options?: { readonly socket?: { readonly host?: string; readonly port?: number } }
  sendCommand(words: readonly string[]): Promise<unknown>
}

interface ClusterNode {
  readonly address: string
  readonly client?: Single | undefined
}

interface Cluster extends Common {
  readonly masters: readonly ClusterNode[]
  readonly slots: readonly ({ readonly master: ClusterNode } | undefined)[]
  nodeClient(node: ClusterNode): Promise<Single>
  sendCommand(firstKey: string | undefined, isReadonly: boolean, words: readonly string[]): Promise<unknown>
}

interface Sentinel extends Common {
  readonly isReady: boolean
  sendCommand(isReadonly: boolean, words: readonly string[]): Promise<unknown>
  getSentinelNode(): unknown
  getMasterNode(): unknown
}

type Any = Single | Cluster | Sentinel

function isCluster(client: object): client is Cluster {
  return 'nodeClient' in client
}

function isSentinel(client: object): client is Sentinel {
  return 'getSentinelNode' in client
}

/** What a duplicate must not keep: our own prefix names every key, and no reply may be another's or an old one. */
const NOT_KEPT = { keyPrefix: undefined, clientSideCache: undefined, readonly: false } as const

/**
 * Duplicates a client with our options. `duplicate` replaces nested options as a whole, and a password or a
 * certificate may be among them. Only a single client shows those it has, so that ours can be merged with them; the
 * nodes of a cluster and behind sentinels keep the caller's.
 */
export function duplicateNodeRedis(client: NodeRedisLike): NodeRedisLike {
  const given = client as unknown as Any
  if (isCluster(given)) {
    const { defaults, ...options } = clientOptions.nodeRedisCluster
    return given.duplicate({ ...options, ...NOT_KEPT }) as NodeRedisLike
  }
  if (isSentinel(given)) {
    const { nodeClientOptions, sentinelClientOptions, ...options } = clientOptions.nodeRedisSentinel
    return given.duplicate({ ...options, ...NOT_KEPT }) as NodeRedisLike
  }
  const { socket, ...options } = clientOptions.nodeRedis
  return given.duplicate({
    ...options,
    ...NOT_KEPT,
    socket: { ...given.options?.socket, ...socket },
  }) as NodeRedisLike
}

export function fromNodeRedis(client: NodeRedisLike): LibraryClient {
  const given = client as unknown as Any
  const cluster = isCluster(given) ? given : null
  const sentinel = isSentinel(given) ? given : null
  const own = given.withCommandOptions(clientOptions.nodeRedis.commandOptions) as Any
  let tellLost = (): void => {}
  /** Sent as words, which takes the client less time than its own function for the command. */
  function run(command: string, what: string, keys: string[], args: string[]): Promise<unknown> {
    const isHeld =
      cluster === null
        ? sentinel !== null && sentinel.getMasterNode() === undefined
        : isUnconnected(cluster, keys[0])
    if (!isHeld) return send(own, [command, what, String(keys.length), ...keys, ...args], keys[0])
    // The client would hold the command until there is a connection, and send it long after it was given up.
    tellLost()
    return Promise.reject(new Error('the primary is not connected'))
  }
  return {
    cluster: cluster !== null,
    connectWithinMs: ((cluster ?? sentinel) ? 4 : 1) * CONNECT_TIMEOUT_MS,
    evalsha: (sha, keys, args) => run('EVALSHA', sha, keys, args),
    eval: (text, keys, args) => run('EVAL', text, keys, args),
    fcall: (name, keys, args) => run('FCALL', name, keys, args),
    loadFunctions: async code =>
      Promise.all(connectedPrimaries(given).map(node => send(node, ['FUNCTION', 'LOAD', 'REPLACE', code]))),
    info: async () => String(await send(connectedPrimaries(given)[0] ?? given, ['INFO'])),
    address: () => addressOf(given),
    nodeOf: key => cluster?.slots[slotOf(key)]?.master.address ?? '',
    async connect(onMade) {
      given.once('connect', onMade)
      await new Promise((resolve, reject) => {
        // A client whose options let it try again does so without end, and only says so.
        if (cluster === null && sentinel === null) given.once('error', reject)
        if (given.isOpen) void whenNodeRedisOpen(client).then(resolve)
        else given.connect().then(resolve, reject)
      })
      // A primary that cannot be reached may have been replaced already.
      return cluster === null || areSoonDone(cluster.masters.map(master => cluster.nodeClient(master)))
    },
    // Without a listener a lost connection would end the process. The failed calls report it anyway.
    listen({ onError, onReady, onLost, onNodeLost }) {
      tellLost = onNodeLost
      given.on('error', onError)
      if (isCluster(given)) {
        given.on('node-error', onError).on('node-ready', onReady).on('node-reconnecting', onNodeLost)
      } else if (isSentinel(given)) {
        given.on('ready', onReady)
      } else {
        given
          .on('error', () => !given.isReady && onLost())
          .on('reconnecting', onLost)
          .on('end', onLost)
      }
    },
    destroy() {
      // A socket that is still connecting is kept, so it is destroyed once it is connected.
      given.once('connect', () => given.destroy())
      return given.destroy()
    },
  }
}

/** Resolves when the caller has connected their own client. */
export function whenNodeRedisOpen(client: NodeRedisLike): Promise<void> {
  const given = client as unknown as Any
  if (isCluster(given) ? given.isOpen : given.isReady) return Promise.resolve()
  return new Promise(resolve => {
    given.once(isCluster(given) ? 'connect' : 'ready', () => resolve())
  })
}

/** Whether a node was connected once, or is about to be, and is not now. One that is new connects when it is asked. */
function isUnconnected({ slots }: Cluster, key = ''): boolean {
  return slots[slotOf(key)]?.master.client?.isReady === false
}

function addressOf(client: Any): string | undefined {
  if (isCluster(client) || isSentinel(client)) return undefined
  const { host = 'localhost', port = 6379 } = client.options?.socket ?? {}
  return `${host}:${port}`
}

function send(client: Any, words: readonly string[], firstKey?: string): Promise<unknown> {
  if (isCluster(client)) return client.sendCommand(firstKey, false, words)
  return isSentinel(client) ? client.sendCommand(false, words) : client.sendCommand(words)
}

function connectedPrimaries(client: Any): Any[] {
  if (!isCluster(client)) return [client]
  const nodes = client.masters.flatMap(({ client: node }) => (node?.isReady ? [node] : []))
  if (nodes.length === 0) throw new Error('no primary is connected')
  return nodes
}
