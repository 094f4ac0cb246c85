/** Calls of gRPC as any client may make them, over plain HTTP/2: what is answered, and what is bounded (promise S51). */
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { DEFAULT_CALL_BOUNDS } from '../src/envoy/grpc/call-server.js'
import { type GrpcServerOptions, startGrpcServer } from '../src/envoy/grpc/grpc-server.js'

const RATE_LIMIT = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const WATCH = '/grpc.health.v1.Health/Watch'
const OK = '0'
const INVALID_ARGUMENT = '3'
const RESOURCE_EXHAUSTED = '8'
const UNIMPLEMENTED = '12'
const UNAVAILABLE = '14'
/** A question about the domain `edge`. */
const QUESTION = Buffer.concat([Buffer.from([10, 4]), Buffer.from('edge')])

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

interface Served {
  readonly open: () => ClientHttp2Session
  readonly asked: () => number
  readonly stop: (withinMs: number) => Promise<void>
}

async function serve(options: Partial<GrpcServerOptions> = {}): Promise<Served> {
  let asked = 0
  const service = async () => {
    asked++
    return { isOver: false, statuses: [], headers: [], metadata: null }
  }
  const place = { host: '127.0.0.1', port: 0, tls: null, log: () => {} }
  const server = await startGrpcServer({ service, ...place, ...options })
  cleanUps.push(() => server.stop(100))
  return {
    asked: () => asked,
    stop: server.stop,
    open() {
      const session = connect(`http://127.0.0.1:${server.port}`)
      session.on('error', () => {})
      cleanUps.push(() => session.destroy())
      return session
    },
  }
}

interface Call {
  readonly stream: ClientHttp2Stream
  /** How it ended: the status of gRPC, else of HTTP, else that the stream was closed. */
  readonly outcome: Promise<string>
}

function call(session: ClientHttp2Session, headers: Record<string, string> = {}): Call {
  const stream = session.request({
    ':method': 'POST',
    ':path': RATE_LIMIT,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  })
  stream.on('error', () => {})
  stream.resume()
  const outcome = new Promise<string>(resolve => {
    stream.once('response', head => {
      const status = head['grpc-status']
      if (status !== undefined) resolve(String(status))
      else if (head[':status'] !== 200) resolve(`HTTP ${head[':status']}`)
    })
    stream.once('trailers', trailers => resolve(String(trailers['grpc-status'])))
    stream.once('close', () => resolve('closed'))
  })
  return { stream, outcome }
}

function framed(message: Buffer, { compressed = 0, length = message.length } = {}): Buffer {
  const prefix = Buffer.alloc(5)
  prefix[0] = compressed
  prefix.writeUInt32BE(length, 1)
  return Buffer.concat([prefix, message])
}

async function ask(session: ClientHttp2Session, bytes: Buffer, headers: Record<string, string> = {}) {
  const { stream, outcome } = call(session, headers)
  stream.end(bytes)
  return outcome
}

describe('what is answered', () => {
  it('a call is answered however its bytes are cut, compressed or not', async () => {
    const { open, asked } = await serve()
    const session = open()
    expect(await ask(session, framed(QUESTION))).toBe(OK)
    const gzip = { 'grpc-encoding': 'gzip' }
    expect(await ask(session, framed(gzipSync(QUESTION), { compressed: 1 }), gzip)).toBe(OK)
    const { stream, outcome } = call(session)
    for (const byte of framed(QUESTION)) {
      stream.write(Buffer.from([byte]))
      await new Promise(setImmediate)
    }
    stream.end()
    expect(await outcome).toBe(OK)
    expect(asked()).toBe(3)
  })

  it.each<[string, string, Buffer, Record<string, string>]>([
    ['no bytes', INVALID_ARGUMENT, Buffer.alloc(0), {}],
    ['half a prefix', INVALID_ARGUMENT, Buffer.alloc(3), {}],
    ['half a message', INVALID_ARGUMENT, framed(QUESTION).subarray(0, 8), {}],
    ['two messages', INVALID_ARGUMENT, Buffer.concat([framed(QUESTION), framed(QUESTION)]), {}],
    ['a length of 4 GB', RESOURCE_EXHAUSTED, framed(QUESTION, { length: 2 ** 32 - 1 }), {}],
    ['an encoding nobody named', UNIMPLEMENTED, framed(QUESTION, { compressed: 1 }), {}],
    [
      'an unknown encoding',
      UNIMPLEMENTED,
      framed(QUESTION, { compressed: 1 }),
      { 'grpc-encoding': 'snappy' },
    ],
    ['broken gzip', INVALID_ARGUMENT, framed(QUESTION, { compressed: 1 }), { 'grpc-encoding': 'gzip' }],
    ['another path', UNIMPLEMENTED, framed(QUESTION), { ':path': '/envoy.Other/Method' }],
    ['another type', 'HTTP 415', framed(QUESTION), { 'content-type': 'application/json' }],
    ['another method', 'HTTP 405', framed(QUESTION), { ':method': 'PUT' }],
  ])('a call with %s is rejected with %s', async (_what, status, bytes, headers) => {
    const { open, asked } = await serve()
    const session = open()
    expect(await ask(session, bytes, headers)).toBe(status)
    expect(asked()).toBe(0)
    expect(await ask(session, framed(QUESTION))).toBe(OK)
  })

  it('a fault in deciding is UNAVAILABLE, and its words reach nobody', async () => {
    const lines: string[] = []
    const service = () => Promise.reject(new Error('a secret'))
    const { open } = await serve({ service, log: line => lines.push(line) })
    const { stream, outcome } = call(open())
    const [head] = await Promise.all([once(stream, 'response'), stream.end(framed(QUESTION))])
    expect(await outcome).toBe(UNAVAILABLE)
    expect(JSON.stringify(head)).not.toContain('secret')
    expect(lines).toEqual(['ShouldRateLimit failed: a secret'])
  })

  it('a watcher of the health is told when it stops, however long that takes', async () => {
    const { open, stop } = await serve({ bounds: { withinMs: 50 } })
    const { stream, outcome } = call(open(), { ':path': WATCH })
    const chunks: Buffer[] = []
    stream.on('data', chunk => chunks.push(chunk))
    stream.end(framed(Buffer.alloc(0)))
    await once(stream, 'data')
    // The sweep that ends late calls comes by once a second.
    await new Promise(resolve => setTimeout(resolve, 1_500))
    await stop(1_000)
    expect(await outcome).toBe(OK)
    expect(Buffer.concat(chunks).toString('hex')).toBe('00000000020801' + '00000000020802')
  })
})

describe('what is bounded', () => {
  it('a connection is told how many calls it may have at once', async () => {
    const { open } = await serve()
    const session = open()
    await once(session, 'remoteSettings')
    expect(session.remoteSettings.maxConcurrentStreams).toBe(DEFAULT_CALL_BOUNDS.maxCalls)
  })

  it('the oldest unfinished message of a connection makes room, and others are answered', async () => {
    const bounds = { perConnection: { calls: 99, bytes: 1_000 } }
    const { open, asked } = await serve({ bounds })
    const session = open()
    const begun = Array.from({ length: 4 }, () => call(session))
    for (const { stream } of begun) {
      stream.write(framed(Buffer.alloc(10), { length: 400 }))
      await new Promise(resolve => setTimeout(resolve, 10))
    }
    expect(await Promise.all(begun.slice(0, 2).map(({ outcome }) => outcome))).toEqual([
      RESOURCE_EXHAUSTED,
      RESOURCE_EXHAUSTED,
    ])
    expect(await ask(session, framed(QUESTION))).toBe(OK)
    expect(asked()).toBe(1)
    // What was begun within the bound can be finished.
    begun[3]?.stream.end(Buffer.alloc(390))
    expect(await begun[3]?.outcome).toBe(OK)
    expect(asked()).toBe(2)
  })

  it('connections share a bound of their calls and bytes', async () => {
    const { open } = await serve({ bounds: { inAll: { calls: 3, bytes: 1_000 } } })
    const silent = Array.from({ length: 4 }, () => call(open()))
    const first = await Promise.race(silent.map(({ outcome }) => outcome))
    expect(first).toBe(RESOURCE_EXHAUSTED)
    const large = Array.from({ length: 3 }, () => call(open()))
    for (const { stream } of large) stream.write(framed(Buffer.alloc(10), { length: 600 }))
    await expect.poll(() => Promise.race(large.map(({ outcome }) => outcome))).toBe(RESOURCE_EXHAUSTED)
    expect(await ask(open(), framed(QUESTION))).toBe(OK)
  })

  it('a client may break off at any moment', async () => {
    let answer = (): void => {}
    const waiting = new Promise<void>(resolve => {
      answer = resolve
    })
    const service = () => waiting.then(() => ({ isOver: false, statuses: [], headers: [], metadata: null }))
    const { open } = await serve({ service })
    const session = open()
    const codes = [constants.NGHTTP2_CANCEL, constants.NGHTTP2_NO_ERROR, constants.NGHTTP2_PROTOCOL_ERROR]
    for (const code of codes) {
      for (const bytes of [Buffer.alloc(0), framed(QUESTION).subarray(0, 7), framed(QUESTION)]) {
        for (const path of [RATE_LIMIT, WATCH]) {
          const { stream } = call(session, { ':path': path })
          stream.write(bytes)
          await new Promise(resolve => setTimeout(resolve, 5))
          stream.close(code)
        }
      }
    }
    const last = ask(session, framed(QUESTION))
    answer()
    expect(await last).toBe(OK)
    session.destroy()
    expect(await ask(open(), framed(QUESTION))).toBe(OK)
  })

  it('a call that is not finished, or whose answer is not read, is ended in time', async () => {
    const { open } = await serve({ bounds: { withinMs: 50 } })
    const session = open()
    const silent = call(session)
    const slow = call(session)
    slow.stream.write(framed(QUESTION).subarray(0, 4))
    const deaf = connectDeaf(open())
    deaf.end(framed(QUESTION))
    for (const stream of [silent.stream, slow.stream, deaf]) {
      if (!stream.closed) await once(stream, 'close')
      expect(stream.rstCode).toBe(constants.NGHTTP2_CANCEL)
    }
    expect(await ask(session, framed(QUESTION))).toBe(OK)
  })

  it('a connection has a few watchers of the health at most', async () => {
    const { open } = await serve()
    const session = open()
    const watching = Array.from({ length: 11 }, () => call(session, { ':path': WATCH }))
    for (const { stream } of watching) stream.end(framed(Buffer.alloc(0)))
    expect(await watching[10]?.outcome).toBe(RESOURCE_EXHAUSTED)
    const { stream } = call(open(), { ':path': WATCH })
    stream.end(framed(Buffer.alloc(0)))
    await once(stream, 'data')
  })
})

/** Makes a call whose answer has no room to be sent. */
function connectDeaf(session: ClientHttp2Session): ClientHttp2Stream {
  session.settings({ initialWindowSize: 0 })
  const stream = session.request({
    ':method': 'POST',
    ':path': RATE_LIMIT,
    'content-type': 'application/grpc',
    te: 'trailers',
  })
  stream.on('error', () => {})
  return stream
}
