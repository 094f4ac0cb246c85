/** Servers that speak Redis's protocol, or its REST dialect, and answer every script with nonsense. */
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { Redis as UpstashRedis } from '@upstash/redis'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { createLimiter, slidingWindowLog, tokenBucket } from '../../src/index.ts'
import { redisStore } from '../../src/redis.ts'

const HUGE = 10 ** 12
const NOW_US = 1_700_000_000_000_000

/** Bytes on the wire, where no value has such bytes. */
interface Raw {
  readonly bytes: string
}

type Nonsense = null | number | string | boolean | readonly Nonsense[] | Raw

/** Answers that no script gives: wrong types, wrong sizes, numbers that are none or too large, half an answer. */
export const NONSENSE: readonly [Nonsense, ...Nonsense[]] = [
  Number.MAX_SAFE_INTEGER,
  ...[null, '', 'OK', 'QUEUED', 'NaN', -1, HUGE, 'x'.repeat(100_000)],
  ...[[], [null], ['QUEUED'], [[]], [[[[[]]]]], [-1, -1], ['NaN', 'NaN'], Array<number>(10_000).fill(1)],
  ...[
    [HUGE, String(NOW_US), '', HUGE, HUGE],
    [1, 'soon', '', 1, 1],
    [0, String(NOW_US), '', 0, 0],
  ],
  ...[
    [NOW_US, HUGE],
    [NOW_US, -HUGE],
    [NOW_US, 'NaN'],
    [NOW_US, [0, HUGE, 0, NOW_US]],
    [NOW_US, [0, 1]],
  ],
  ...[
    [NOW_US, ['ERR']],
    [NOW_US, null],
    [NOW_US, [-2, 0, 0, -1]],
    [null, null, null, null, null],
  ],
  { bytes: ':9223372036854775807\r\n' },
  { bytes: '-ERR something else entirely\r\n' },
  { bytes: '-QUEUED\r\n' },
  { bytes: '$5\r\nab' },
  { bytes: '*3\r\n:1\r\n' },
  { bytes: '*1000000\r\n' },
  { bytes: 'HTTP/1.1 400 Bad Request\r\n\r\n' },
]

export const CLIENTS = ['ioredis', 'node-redis', 'upstash'] as const
export type ClientName = (typeof CLIENTS)[number]

const LIMIT = 10
const POLICIES = {
  log: slidingWindowLog({ limit: LIMIT, window: '1h' }),
  bucket: tokenBucket({ capacity: LIMIT, refillPerSecond: 0.001 }),
}
const SILENT = { info() {}, warn() {}, error() {} }

/**
 * Asks three times as much as the limit of a limiter whose Redis answers with this. Returns how many questions were
 * asked and how long the slowest took; throws if one was not decided, or more or fewer passed than the failure mode says.
 */
export async function askNonsense(
  name: ClientName,
  nonsense: Nonsense,
): Promise<{ readonly asked: number; readonly slowestMs: number }> {
  const server = name === 'upstash' ? await startRest(nonsense) : await startRedisLike(nonsense)
  const { client, end } = clientOf(name, server.port)
  const store = redisStore(client, { logger: SILENT, onWarning: () => {}, connectTimeoutMs: 500 })
  const limiter = createLimiter({ store, policies: POLICIES })
  let [asked, slowestMs] = [0, 0]
  try {
    await store.ready({ timeoutMs: 500 })
    for (const policy of ['log', 'bucket'] as const) {
      let allowed = 0
      for (let time = 0; time < 3 * LIMIT; time++) {
        const began = performance.now()
        const decision = await limiter.check('user:1', { policy })
        slowestMs = Math.max(slowestMs, performance.now() - began)
        asked++
        if (decision.source !== 'local') throw new Error(`${policy}: decided by ${decision.source}`)
        if (decision.allowed) allowed++
      }
      if (allowed !== LIMIT) throw new Error(`${policy}: ${allowed} of ${3 * LIMIT} passed, not ${LIMIT}`)
      const closed = await limiter.check('user:1', { policy, onStoreFailure: 'closed' })
      if (closed.allowed || closed.source !== 'closed') throw new Error(`${policy}: closed let it pass`)
    }
    return { asked, slowestMs }
  } finally {
    await limiter.close()
    end()
    await server.close()
  }
}

function clientOf(name: ClientName, port: number) {
  if (name === 'ioredis') {
    const client = new Redis({ port, lazyConnect: true })
    client.on('error', () => {})
    return { client, end: () => client.disconnect() }
  }
  if (name === 'node-redis') {
    const client = createClient({ url: `redis://127.0.0.1:${port}` })
    client.on('error', () => {})
    return { client, end: () => {} }
  }
  return { client: new UpstashRedis({ url: `http://127.0.0.1:${port}`, token: 'any' }), end: () => {} }
}

/** Greets like Redis, and answers scripts with nonsense. */
async function startRedisLike(nonsense: Nonsense) {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    let received = ''
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    socket.on('data', chunk => {
      received += chunk.toString('latin1')
      for (let command = nextCommand(received); command !== null; command = nextCommand(received)) {
        received = received.slice(command.end)
        socket.write(answerTo(command.words[0] ?? '', nonsense), 'latin1')
      }
    })
  })
  const port = await listening(server)
  return {
    port,
    close: () =>
      new Promise<void>(resolve => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
}

function answerTo(command: string, nonsense: Nonsense): string {
  switch (command.toUpperCase()) {
    case 'EVAL':
    case 'EVALSHA':
    case 'FCALL':
      return encoded(nonsense)
    case 'HELLO':
      return '%1\r\n$5\r\nproto\r\n:3\r\n'
    case 'INFO':
      return encoded('redis_version:7.2.0\r\nmaxmemory_policy:noeviction\r\nloading:0\r\n')
    default:
      return '+OK\r\n'
  }
}

function encoded(value: Nonsense): string {
  if (value === null) return '$-1\r\n'
  if (typeof value === 'number') return `:${value}\r\n`
  if (typeof value === 'boolean') return `:${Number(value)}\r\n`
  if (typeof value === 'string') return `$${Buffer.byteLength(value)}\r\n${value}\r\n`
  if ('bytes' in value) return value.bytes
  return `*${value.length}\r\n${value.map(encoded).join('')}`
}

/** Returns the first command in the text and where it ends; null if it has not all arrived. */
function nextCommand(text: string): { readonly words: readonly string[]; readonly end: number } | null {
  const head = /^\*(\d+)\r\n/.exec(text)
  if (head === null) return null
  const words: string[] = []
  let end = head[0].length
  for (let word = 0; word < Number(head[1]); word++) {
    const size = /^\$(\d+)\r\n/.exec(text.slice(end, end + 20))
    if (size === null) return null
    const start = end + size[0].length
    end = start + Number(size[1]) + 2
    if (text.length < end) return null
    words.push(text.slice(start, end - 2))
  }
  return { words, end }
}

/** Answers every request over HTTP with the same: as a result, or as bytes that are no JSON. */
async function startRest(nonsense: Nonsense) {
  const body =
    typeof nonsense === 'object' && nonsense !== null && 'bytes' in nonsense
      ? nonsense.bytes
      : JSON.stringify({ result: nonsense })
  const server = createHttpServer((request, response) => {
    request.resume()
    request.on('end', () => response.setHeader('content-type', 'application/json').end(body))
  })
  const port = await listening(server)
  return {
    port,
    close: () =>
      new Promise<void>(resolve => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}
