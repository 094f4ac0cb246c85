import type { RedisConnection } from '../connection.js'
import { CONNECT_TIMEOUT_MS } from '../reconnect.js'
import { isReadOnly } from '../script-runner.js'
import { slotOf } from '../slot.js'
import { type ClientReplacer, createClientReplacer, NoGreeting } from './client-replacer.js'
import { replaceNode, watchNodes } from './node-redis-nodes.js'
import {
  COMMAND_OPTIONS,
  duplicateClient,
  duplicateCluster,
  duplicateSentinel,
} from './node-redis-options.js'
import type { NodeRedisClient, NodeRedisCluster, NodeRedisSentinel } from './node-redis-shape.js'

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

type Single = NodeRedisClient
type Cluster = NodeRedisCluster
type Sentinel = NodeRedisSentinel
type Any = Single | Cluster | Sentinel

/** Opens our own connection with the safe options, or uses the caller's client if it is shared. */
export function nodeRedisConnection(client: NodeRedisLike, shared: boolean): RedisConnection {
  return shared ? sharedConnection(client as unknown as Any) : ownConnection(client as unknown as Any)
}

/** The caller connects and closes it. */
function sharedConnection(client: Any): RedisConnection {
  const own = client.withCommandOptions(COMMAND_OPTIONS) as Any
  return {
    ...commands(async send => send(own)),
    cluster: isCluster(client),
    address: () => addressOf(client),
    ready: () => whenOpen(client),
  }
}

function ownConnection(given: Any): RedisConnection {
  let problem: string | undefined
  // Without a listener a lost connection would end the process. The failed calls report it anyway.
  const note = (error: unknown): void => {
    problem = error instanceof Error ? error.message : String(error)
  }
  const listeners: (() => void)[] = []
  const tell = (): void => {
    for (const listener of listeners) listener()
  }
  const own: ClientReplacer<Any> = createClientReplacer<Any>({
    make: () => watched(duplicate(given).on('error', note) as Any),
    connect,
    dispose,
    onReplaced: tell,
  })

  function watched(client: Any): Any {
    if (isCluster(client)) return watchNodes(client, { onReady: tell, onLost: () => own.replace() })
    const isInUse = (): boolean => own.current() === client
    // A client that reconnects has no timeout for the greeting.
    whenUngreeted(client, () => isInUse() && own.replace())
    return client.on('ready', () => isInUse() && tell())
  }

  /** Replacing a client that is already reconnecting would only double a fleet's attempts. */
  function isReconnecting(client: Any): boolean {
    return !isCluster(client) && !isSentinel(client) && client.isOpen && !client.isReady
  }

  async function send<Reply>(command: (client: Any) => Promise<Reply>): Promise<Reply> {
    const client = own.current()
    if (client === null) throw new Error('not connected yet')
    if (isSentinel(client) && client.getMasterNode() === undefined) {
      // The client would hold the command indefinitely and search for a primary without pause.
      own.replace()
      throw new Error('no primary is connected')
    }
    try {
      return await command(client)
    } catch (error) {
      // Our primary has become a replica, and stays one.
      if (isReadOnly(error)) own.replace()
      throw error
    }
  }

  return {
    ...commands(send),
    cluster: isCluster(given),
    ready: own.ready,
    address: () => addressOf(given),
    problem: () => problem,
    nodeOf: key => nodeHolding(own.current(), key),
    replace(node) {
      const client = own.current()
      if (client === null || isReconnecting(client)) return
      if (isCluster(client)) replaceNode(client, node, () => own.replace())
      else own.replace()
    },
    onConnected: listener => void listeners.push(listener),
    async close() {
      own.close()
    },
  }
}

/** node-redis keeps a socket that is still connecting, so that one is destroyed once it is connected. */
function dispose(client: Any): void {
  client.destroy()
  client.once('connect', () => client.destroy())
}

function addressOf(client: Any): string | undefined {
  if (isCluster(client) || isSentinel(client)) return undefined
  const { host = 'localhost', port = 6379 } = client.options?.socket ?? {}
  return `${host}:${port}`
}

type Send = <Reply>(command: (client: Any) => Promise<Reply>) => Promise<Reply>

/** The types of the three kinds of client agree on these commands, but TypeScript cannot see it. */
function commands(
  send: Send,
): Required<Pick<RedisConnection, 'evalsha' | 'eval' | 'fcall' | 'loadFunctions' | 'info'>> {
  return {
    evalsha: (sha, keys, args) => send(client => (client as Single).evalSha(sha, { keys, arguments: args })),
    eval: (text, keys, args) => send(client => (client as Single).eval(text, { keys, arguments: args })),
    fcall: (name, keys, args) => send(client => (client as Single).fCall(name, { keys, arguments: args })),
    loadFunctions: code =>
      send(client =>
        Promise.all(connectedPrimaries(client).map(node => node.functionLoad(code, { REPLACE: true }))),
      ),
    info: () => send(async client => String(await connectedPrimaries(client)[0]?.info())),
  }
}

function isCluster(client: object): client is Cluster {
  return 'nodeClient' in client
}

function nodeHolding(client: Any | null, key: string): string {
  if (client === null || !isCluster(client)) return ''
  return client.slots[slotOf(key)]?.master.address ?? ''
}

function isSentinel(client: object): client is Sentinel {
  return 'getSentinelNode' in client
}

function duplicate(client: Any): Any {
  if (isCluster(client)) return duplicateCluster(client)
  if (isSentinel(client)) return duplicateSentinel(client)
  return duplicateClient(client)
}

async function connect(client: Any): Promise<boolean> {
  await greeted(client)
  return !isCluster(client) || connectPrimaries(client)
}

/**
 * Connects with a timeout for the greeting. The client's own timeout ends once the connection is made. If nothing
 * answers on it, as behind a balancer whose server is gone, it would wait forever, and so would everything that
 * waits for a new client.
 */
function greeted(client: Any): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    const giveUp = (): void => reject(new NoGreeting('connected, but no answer'))
    // A cluster does not tell when it is connected to the node that it asks for the topology.
    if (isCluster(client)) timer = setTimeout(giveUp, 4 * CONNECT_TIMEOUT_MS)
    else whenUngreeted(client, giveUp)
    client
      .connect()
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}

/**
 * Calls `tell` for every connection that was neither greeted nor lost in time. The second timer lets a busy process
 * read its sockets first: timers run before that, and discarding the client for it would restart its attempts
 * without a delay.
 */
function whenUngreeted(client: Single | Sentinel, tell: () => void): void {
  let timer: NodeJS.Timeout | undefined
  const callOff = (): void => clearTimeout(timer)
  client
    .on('connect', () => {
      callOff()
      timer = setTimeout(() => {
        timer = setTimeout(tell, 0)
      }, CONNECT_TIMEOUT_MS)
      timer.unref()
    })
    .on('error', callOff)
    .on('ready', callOff)
}

/** Whether all primaries could be connected soon. One that cannot may have been replaced already. */
async function connectPrimaries(cluster: Cluster): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>(resolve => {
    timer = setTimeout(() => resolve(false), 2 * CONNECT_TIMEOUT_MS)
  })
  const all = Promise.all(cluster.masters.map(master => cluster.nodeClient(master)))
  const whole = await Promise.race([
    all.then(
      () => true,
      () => false,
    ),
    late,
  ])
  clearTimeout(timer)
  return whole
}

function connectedPrimaries(client: Any): Single[] {
  if (!isCluster(client)) return [client as Single]
  const nodes = client.masters.flatMap(({ client: node }) => (node?.isReady ? [node] : []))
  if (nodes.length === 0) throw new Error('no primary is connected')
  return nodes as unknown as Single[]
}

function whenOpen(client: Any): Promise<void> {
  if (client.isOpen) return Promise.resolve()
  return new Promise(resolve => {
    client.once(isCluster(client) ? 'connect' : 'ready', () => resolve())
  })
}
