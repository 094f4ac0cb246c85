import type { Cluster, Redis } from 'ioredis'
import { CONNECT_TIMEOUT_MS } from '../reconnect.js'
import { slotOf } from '../slot.js'
import { clientOptions } from './client-options.js'
import { areSoonDone, type LibraryClient } from './own-connection.js'

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

/**
 * Duplicates a client with options under which a lost reply is an error instead of a second charge. By default
 * ioredis queues while it is disconnected and resends unanswered commands.
 */
export function duplicateIoredis(client: IoredisLike): IoredisLike {
  const given = client as unknown as Redis | Cluster
  if (!isCluster(given)) return given.duplicate(clientOptions.ioredis)
  const { redisOptions, ...options } = clientOptions.ioredisCluster
  return given.duplicate(undefined, {
    ...options,
    redisOptions: { ...given.options.redisOptions, ...redisOptions },
  } as Parameters<Cluster['duplicate']>[1])
}

export function fromIoredis(client: IoredisLike): LibraryClient {
  const own = client as unknown as Redis | Cluster
  return {
    cluster: own.isCluster,
    connectWithinMs: (isCluster(own) || own.options.sentinels ? 4 : 1) * CONNECT_TIMEOUT_MS,
    evalsha: (sha, keys, args) => own.evalsha(sha, keys.length, ...keys, ...args),
    eval: (text, keys, args) => own.eval(text, keys.length, ...keys, ...args),
    fcall: (name, keys, args) => own.fcall(name, keys.length, ...keys, ...args),
    loadFunctions: async code =>
      Promise.all(connectedPrimaries(own).map(node => node.call('FUNCTION', 'LOAD', 'REPLACE', code))),
    info: async () => String(await connectedPrimaries(own)[0]?.info()),
    address: () => (isCluster(own) ? undefined : addressOf(own)),
    nodeOf: key => (isCluster(own) ? (own.slots[slotOf(key)]?.[0] ?? '') : ''),
    async connect(onMade) {
      own.once('connect', onMade)
      await new Promise<void>((resolve, reject) => {
        if (own.status === 'ready') resolve()
        const fail = (): void => reject(new Error('the connection was closed'))
        own.once('ready', resolve).once('error', reject).once('close', fail).once('end', fail)
        if (own.status === 'wait') own.connect().catch(reject)
      })
      return !isCluster(own) || areSoonDone(own.nodes('master').map(connectNode))
    },
    // Without a listener every lost connection would be printed; the failed calls report it anyway.
    listen({ onError, onReady, onLost }) {
      own.on('error', onError).on('close', onLost).on('end', onLost)
      // A cluster finds the nodes that it lost by itself.
      if (isCluster(own)) own.on('node error', onError).on('+node', node => node.on('ready', onReady))
    },
    destroy: () => own.disconnect(),
  }
}

/** Resolves when the caller's own client is ready. One made with lazyConnect connects at its first command. */
export async function whenIoredisReady(client: IoredisLike): Promise<void> {
  const given = client as unknown as Redis | Cluster
  if (given.status === 'ready') return
  await new Promise<void>(resolve => {
    given.once('ready', () => resolve())
    if (given.status === 'wait') given.connect().catch(() => {})
  })
}

/** A node is connected when it is first asked, or by its cluster. */
async function connectNode(node: Redis): Promise<void> {
  if (node.status === 'wait') return node.connect()
  if (node.status !== 'ready') await new Promise(resolve => void node.once('ready', resolve))
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
