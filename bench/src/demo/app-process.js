/** An app behind the gateways. It says hello, counts how often it did, and prints its port. */
import { createServer } from 'node:http'

let answered = 0

const server = createServer((request, response) => {
  const isCount = request.url === '/answered'
  if (!isCount) answered++
  const body = JSON.stringify(isCount ? { answered } : { message: 'Hello from behind the limiter.' })
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length })
  response.end(body)
})
server.listen(0, '127.0.0.1', () => {
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())
  process.stdout.write(`${address.port}\n`)
})
