import { createServer } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { Connection } from './connection.js'
import { requestOf } from './http.js'
import { sendOnTime } from './send.js'

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
/** @type {(() => void)[]} */
const closers = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

/** @param {(socket: import('node:net').Socket, request: number) => void} onRequest @returns {Promise<number>} Its port. */
function serve(onRequest) {
  let requests = 0
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.on('data', () => onRequest(socket, requests++))
  })
  closers.push(() => server.close())
  return new Promise(resolve => {
    server.listen(0, '127.0.0.1', () =>
      resolve(/** @type {import('node:net').AddressInfo} */ (server.address()).port),
    )
  })
}

it('the wait behind a slow answer counts for every request that was due meanwhile', async () => {
  const port = await serve((socket, request) => {
    if (request === 0) setTimeout(() => socket.write(ANSWER), 200)
    else socket.write(ANSWER)
  })
  const connection = new Connection(port)
  closers.push(() => connection.close())
  const latencies = /** @type {number[]} */ ([])
  const schedule = { dueMs: Float64Array.of(0, 50, 100), sender: Uint32Array.of(0, 0, 0) }
  await sendOnTime(
    schedule,
    (_sender, _request, done) => connection.ask(requestOf('a', '/'), done),
    ({ latencyMs }) => latencies.push(latencyMs),
  )
  expect(latencies).toHaveLength(3)
  // A generator that waits for an answer before it sends the next would have seen one slow request, not three.
  for (const [index, atLeastMs] of [190, 140, 90].entries())
    expect(latencies[index]).toBeGreaterThanOrEqual(atLeastMs)
})

it('a request that meets the end of an idle connection is sent once more, a broken answer is lost', async () => {
  const port = await serve((socket, request) => {
    if (request === 1) socket.destroy()
    else if (request === 3) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal')
    else socket.write(ANSWER)
  })
  const connection = new Connection(port)
  closers.push(() => connection.close())
  /** @returns {Promise<number>} */
  const ask = () =>
    new Promise(resolve => connection.ask(requestOf('a', '/'), ({ status }) => resolve(status)))
  expect(await ask()).toBe(200)
  expect(await ask()).toBe(200)
  expect(await ask()).toBe(0)
  expect(await ask()).toBe(200)
})
