import type { RedisConnection } from '../connection.js'

/** The part of a client of `@upstash/redis` or `@vercel/kv` that sends a command. */
interface HttpRequester {
  readonly retry: { readonly attempts: number }
  request(request: { readonly body: readonly (string | number)[] }): Promise<UpstashReply>
}

interface UpstashReply {
  readonly result?: unknown
  readonly error?: string
}

/** Whether a client talks to Redis over HTTP, as those of Upstash and Vercel do. */
export function isUpstash(client: object): boolean {
  const requester = requesterOf(client)
  return typeof requester?.request === 'function' && typeof requester.retry?.attempts === 'number'
}

/**
 * Sends with the client's address, token and settings, but only once: by default it would resend after a lost
 * reply.
 */
export function upstashConnection(client: object): RedisConnection {
  const sender: HttpRequester = Object.create(requesterOf(client) as HttpRequester, {
    retry: { value: { attempts: 0, backoff: () => 0 } },
  })
  async function run(command: string, what: string, keys: string[], args: string[]): Promise<unknown> {
    const { result, error } = await sender.request({ body: [command, what, keys.length, ...keys, ...args] })
    if (error) throw new Error(error)
    return result
  }
  return {
    onDemand: true,
    evalsha: (sha, keys, args) => run('evalsha', sha, keys, args),
    eval: (text, keys, args) => run('eval', text, keys, args),
  }
}

/** Not part of their types. A client without it is used like any other that can run a script. */
function requesterOf(client: object): Partial<HttpRequester> | undefined {
  return (client as { readonly client?: Partial<HttpRequester> }).client
}
