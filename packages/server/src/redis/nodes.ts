import { connectRedis, type RedisConnectOptions } from './connect.js'

/** A Redis server that holds keys, and a way to send it a command. */
export interface RedisNode {
  /** `host:port` on a cluster, else `redis`. */
  readonly name: string
  send(...args: string[]): Promise<unknown>
}

const GIVE_UP_AFTER_MS = 3_000

/** Connects to every node that accepts writes. Rejects with the problem if that takes more than three seconds. */
export async function connectNodes(
  url: string | readonly string[],
  options?: RedisConnectOptions,
): Promise<{ readonly nodes: readonly RedisNode[]; close(): void }> {
  const client = connectRedis(url, options)
  let problem: unknown
  client.on('error', error => {
    problem = error
  })
  const close = () => void client.destroy()
  try {
    await within(client.connect(), () => problem)
    return { nodes: await nodesOf(client), close }
  } catch (error) {
    close()
    throw error
  }
}

async function nodesOf(client: ReturnType<typeof connectRedis>): Promise<RedisNode[]> {
  if ('masters' in client) {
    return Promise.all(
      client.masters.map(async master => {
        const node = await client.nodeClient(master)
        return { name: master.address, send: (...args: string[]) => node.sendCommand(args) }
      }),
    )
  }
  if ('acquire' in client) {
    return [{ name: 'redis', send: (...args) => client.sendCommand(false, args) }]
  }
  return [{ name: 'redis', send: (...args) => client.sendCommand(args) }]
}

/** The client itself tries forever. */
function within(work: Promise<unknown>, problem: () => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const reason = problem() instanceof Error ? `: ${(problem() as Error).message}` : ''
      reject(new Error(`not connected within ${GIVE_UP_AFTER_MS} ms${reason}`))
    }, GIVE_UP_AFTER_MS)
    work.then(() => resolve(), reject).finally(() => clearTimeout(timer))
  })
}
