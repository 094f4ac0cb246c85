import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { createAcceptor } from '../src/envoy/grpc/grpc-acceptor.js'
import { startGrpcServer } from '../src/envoy/grpc/grpc-server.js'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0)) await cleanUp()
})

function open(port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  cleanUps.push(() => socket.destroy())
  return socket
}

async function acceptor(bounds: { maxClientConnections: number; firstBytesWithinMs: number }) {
  const accepted: Socket[] = []
  const { server, destroy } = createAcceptor(bounds, socket => accepted.push(socket.resume()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanUps.push(destroy, () => server.close())
  return { accepted, port: (server.address() as AddressInfo).port }
}

it('an address has a bounded number of connections to the rate limit service, and gets another when one closes', async () => {
  const { accepted, port } = await acceptor({ maxClientConnections: 2, firstBytesWithinMs: 60_000 })
  const [first] = [open(port), open(port)]
  await expect.poll(() => accepted.length).toBe(2)
  await once(open(port), 'close')
  expect(accepted).toHaveLength(2)
  first?.destroy()
  await once(accepted[0] as Socket, 'close')
  open(port)
  await expect.poll(() => accepted.length).toBe(3)
})

it('an idle connection to the rate limit service is closed, an active one is not', async () => {
  const { accepted, port } = await acceptor({ maxClientConnections: 9, firstBytesWithinMs: 100 })
  const speaks = open(port)
  speaks.write('PRI * HTTP/2.0\r\n')
  await expect.poll(() => accepted[0]?.bytesRead ?? 0).toBeGreaterThan(0)
  await once(open(port), 'close')
  expect(speaks.closed).toBe(false)
})

it('the rate limit service stops at once, whoever holds on to a connection', async () => {
  const service = () => Promise.reject(new Error('nobody asks'))
  const server = await startGrpcServer({ service, host: '127.0.0.1', port: 0, tls: null, log: () => {} })
  const silent = open(server.port)
  await once(silent, 'connect')
  const closed = once(silent, 'close')
  await server.stop(500)
  await closed
})
