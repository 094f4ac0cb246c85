/** An upstream that costs next to nothing, so that the proxy in front of it dominates. Prints its port. */
import { createServer } from 'node:net'

const BODY = 'x'.repeat(64)
const ANSWER = `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`

const server = createServer({ noDelay: true }, socket => {
  let received = ''
  socket.setEncoding('latin1')
  socket.on('error', () => socket.destroy())
  socket.on('data', chunk => {
    received += chunk
    for (let end = received.indexOf('\r\n\r\n'); end >= 0; end = received.indexOf('\r\n\r\n')) {
      received = received.slice(end + 4)
      socket.write(ANSWER)
    }
  })
})
server.listen(0, '127.0.0.1', () => {
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())
  process.stdout.write(`${address.port}\n`)
})
