import { createServer, type Server } from 'node:http'

/**
 * Creates a small API to try the gateway with: it answers every request with what it saw of it. Not yet listening.
 */
export function createDemoUpstream(): Server {
  return createServer((req, res) => {
    let bodyBytes = 0
    req.on('data', (chunk: Buffer) => {
      bodyBytes += chunk.length
    })
    req.on('end', () => {
      const seen = { method: req.method, path: req.url, bodyBytes, headers: req.headers }
      res.writeHead(200, { 'Content-Type': 'application/json' })
      res.end(`${JSON.stringify({ message: 'Hello from behind the limiter.', ...seen }, null, 2)}\n`)
    })
  })
}
