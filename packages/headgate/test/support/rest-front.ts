import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { openConnection, type Reply, type RespConnection } from './resp.ts'

/** A Redis behind HTTP, in the dialect of Upstash's REST interface, which Vercel KV uses too. */
export interface RestFront {
  readonly url: string
  readonly token: string
  /** Requests that reached it since the start. */
  readonly requests: number
  /** Executes the next `count` requests and closes their connections instead of answering. */
  loseReplies(count: number): void
  close(): Promise<void>
}

type Command = (string | number)[]

/** Answers `POST /` with one command and `POST /pipeline` with several, from the Redis on `port`. */
export async function startRestFront(port: number): Promise<RestFront> {
  const redis = await openConnection(port)
  const token = 'rest-token'
  let requests = 0
  let toLose = 0

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    requests++
    const body = JSON.parse(await readBody(request)) as Command | Command[]
    if (request.headers.authorization !== `Bearer ${token}`) {
      return answer(response, 401, { error: 'WRONGPASS invalid or missing auth token' })
    }
    const encoded = request.headers['upstash-encoding'] === 'base64'
    const results =
      request.url === '/pipeline'
        ? await Promise.all((body as Command[]).map(command => run(redis, command, encoded)))
        : await run(redis, body as Command, encoded)
    if (toLose > 0) {
      toLose--
      request.socket.destroy()
      return
    }
    answer(response, 'error' in results ? 400 : 200, results)
  }

  const server = createServer((request, response) => {
    handle(request, response).catch(() => request.socket.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : address}`,
    token,
    get requests() {
      return requests
    },
    loseReplies(count) {
      toLose = count
    },
    async close() {
      redis.close()
      server.closeAllConnections()
      await new Promise<void>(resolve => server.close(() => resolve()))
    },
  }
}

type Result = { readonly result: unknown } | { readonly error: string }

async function run(redis: RespConnection, command: Command, encoded: boolean): Promise<Result> {
  const reply = await redis.send(...command.map(withoutFlags))
  if (reply instanceof Error) return { error: reply.message }
  return { result: encoded ? encode(reply) : reply }
}

/** Upstash's own scripts begin with a flag that Redis does not know. */
function withoutFlags(part: string | number): string | number {
  return typeof part === 'string' ? part.replace(/^\s*#!lua flags=allow-key-locking\n/, '') : part
}

/** Strings are sent in base64 if the client asks for it; a bare OK is not. */
function encode(reply: Reply): unknown {
  if (Array.isArray(reply)) return reply.map(item => encode(item))
  return typeof reply === 'string' && reply !== 'OK' ? Buffer.from(reply).toString('base64') : reply
}

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
