import { createServer, request } from 'node:http'
import { type ClientHttp2Session, connect, createServer as createHttp2Server } from 'node:http2'
import { type AddressInfo, connect as connectSocket, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import { rateLimit } from '../../src/node-http.ts'
import { listening } from './listening.ts'

it('requests that come in one write over HTTP/2 pass exactly as many as the limit says', async () => {
  const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 100, window: '1m' }) } })
  const limited = rateLimit({ limiter, policy: 'api', subject: () => Promise.resolve('user:1' as const) })
  const listener = limited((_req, res) => void res.end('hello'))
  const server = createHttp2Server((req, res) => listener(req as never, res as never))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const sessions = Array.from({ length: 8 }, () => connect(`http://127.0.0.1:${port}`))
  const ask = (session: ClientHttp2Session): Promise<number> =>
    new Promise((resolve, reject) => {
      const stream = session.request({ ':path': '/' })
      stream.on('response', headers => resolve(Number(headers[':status']))).on('error', reject)
      stream.resume().end()
    })
  const statuses = await Promise.all(
    sessions.flatMap(session => Array.from({ length: 100 }, () => ask(session))),
  )
  for (const session of sessions) session.close()
  await new Promise(resolve => server.close(resolve))
  expect(statuses.filter(status => status === 200)).toHaveLength(100)
  expect(statuses.filter(status => status === 429)).toHaveLength(700)
})

it.each([
  ['at once', 'user:1'],
  ['later', () => Promise.resolve('user:1' as const)],
] as const)('upgrades that are decided %s are limited in one budget with requests', async (_, subject) => {
  const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 2, window: '1m' }) } })
  const limited = rateLimit({ limiter, policy: 'api', subject })
  const server = createServer(limited((_req, res) => void res.end('hello')))
  server.on(
    'upgrade',
    limited.upgrade((_req, socket) => {
      socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n')
    }),
  )
  const { url, close } = await listening(server)
  const upgrade = (): Promise<{ status: number; type?: string; body: string }> =>
    new Promise((resolve, reject) => {
      const sent = request(url, { agent: false, headers: { Connection: 'Upgrade', Upgrade: 'echo' } })
      sent.on('upgrade', ({ statusCode = 0 }, socket) => {
        socket.destroy()
        resolve({ status: statusCode, body: '' })
      })
      sent.on('response', response => {
        let body = ''
        response.on('data', chunk => {
          body += chunk
        })
        const type = response.headers['content-type'] ?? ''
        response.on('end', () => resolve({ status: response.statusCode ?? 0, type, body }))
      })
      sent.on('error', reject).end()
    })
  expect((await upgrade()).status).toBe(101)
  expect((await fetch(url)).status).toBe(200)
  const denied = await upgrade()
  expect([denied.status, denied.type]).toEqual([429, 'application/problem+json'])
  expect(JSON.parse(denied.body)).toMatchObject({ status: 429, policy: 'api' })
  await close()
})

const OFFER = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n'

it('the server outlives a client that resets its connection while an upgrade is decided', async () => {
  const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 2, window: '1m' }) } })
  let onAsked = () => {}
  const asked = new Promise<void>(resolve => {
    onAsked = resolve
  })
  let onKnown = (_subject: 'user:1') => {}
  const known = new Promise<'user:1'>(resolve => {
    onKnown = resolve
  })
  const subject = () => {
    onAsked()
    return known
  }
  let upgraded = 0
  const server = createServer()
  server.on(
    'upgrade',
    rateLimit({ limiter, policy: 'api', subject }).upgrade(() => void upgraded++),
  )
  const closed = new Promise(resolve =>
    server.once('connection', (socket: Socket) => socket.once('close', resolve)),
  )
  const { url, close } = await listening(server)
  const client = connectSocket(Number(new URL(url).port), '127.0.0.1')
  client.write(OFFER)
  await asked
  client.resetAndDestroy()
  await closed
  onKnown('user:1')
  await known
  await close()
  expect(upgraded).toBe(0)
})

it('the connection of a rejected upgrade is closed, also when the client does not close it', async () => {
  const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 0, window: '1m' }) } })
  const limited = rateLimit({ limiter, policy: 'api', subject: 'user:1' })
  const server = createServer()
  server.on(
    'upgrade',
    limited.upgrade(() => {}),
  )
  const closed = new Promise(resolve =>
    server.once('connection', (socket: Socket) => socket.once('close', resolve)),
  )
  const { url, close } = await listening(server)
  const client = connectSocket({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
  client.resume().write(OFFER)
  await closed
  expect(client.destroyed).toBe(false)
  client.destroy()
  await close()
})
