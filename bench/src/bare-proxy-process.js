/** The simplest reverse proxy in Node: one agent, unchanged headers, two pipes. Prints its port. */
import { Agent, createServer, request } from 'node:http'

const upstreamPort = Number(process.argv[2])
const agent = new Agent({ keepAlive: true, scheduling: 'lifo' })

const server = createServer((req, res) => {
  const { method, url: path, headers } = req
  const outgoing = request(
    { host: '127.0.0.1', port: upstreamPort, agent, method, path, headers },
    incoming => {
      res.writeHead(incoming.statusCode ?? 502, incoming.headers)
      incoming.pipe(res)
    },
  )
  outgoing.on('error', () => res.destroy())
  req.pipe(outgoing)
})
server.listen(0, '127.0.0.1', () => {
  const address = /** @type {import('node:net').AddressInfo} */ (server.address())
  process.stdout.write(`${address.port}\n`)
})
