// A proxy in front of a model. Limits tokens a minute, requests a minute and open streams of each user, all or none.
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  concurrency,
  createLimiter,
  decisionHeaders,
  decisionProblem,
  type Store,
  slidingWindowLog,
} from 'headgate'

const policies = {
  model: [
    slidingWindowLog({ limit: 1_000, window: '1m', name: 'tokens' }),
    slidingWindowLog({ limit: 5, window: '1m', counts: 'requests' }),
    concurrency({ limit: 2, holdFor: '10s' }),
  ],
}

/** Starts the proxy before the model at `modelUrl`. With a Redis store, all proxies share the limits. */
export function startProxy(port: number, modelUrl: string, store?: Store): Promise<Server> {
  const limiter = createLimiter({ policies, ...(store && { store }) })
  const server = createServer(async (req, res) => {
    const { prompt = '', maxTokens = 200 } = JSON.parse(await textOf(req))
    // Charge the most that the answer can take now, and settle for what it took when it is over.
    const estimate = countTokens(prompt) + maxTokens
    const subject = { type: 'user', id: String(req.headers['x-user'] ?? 'nobody') }
    const { decision, settle } = await limiter.reserve(subject, { policy: 'model', cost: estimate })
    for (const [name, value] of decisionHeaders(decision)) res.setHeader(name, value)
    if (!decision.allowed) {
      const { status, headers, body } = decisionProblem(decision)
      return res.writeHead(status, Object.fromEntries(headers)).end(JSON.stringify(body))
    }
    let tokens = countTokens(prompt)
    const gone = new AbortController()
    res.on('close', () => gone.abort())
    try {
      const body = JSON.stringify({ prompt, maxTokens })
      const answer = await fetch(modelUrl, { method: 'POST', body, signal: gone.signal })
      res.writeHead(answer.status, { 'content-type': 'text/event-stream' })
      for await (const chunk of answer.body ?? []) {
        tokens += countTokens(Buffer.from(chunk).toString())
        res.write(chunk)
      }
    } catch (error) {
      if (!gone.signal.aborted) res.destroy(error as Error)
    } finally {
      // A client that went away pays for what it was sent.
      await settle(tokens)
      await decision.release()
      res.end()
    }
  })
  server.on('close', () => limiter.close())
  return listening(server, port)
}

/** A stand-in for such an API: answers with the word `token`, one at a time. */
export function startModel(port: number, everyMs = 5): Promise<Server> {
  const server = createServer(async (req, res) => {
    const { maxTokens, prompt } = JSON.parse(await textOf(req))
    const length = prompt.includes('short') ? Math.min(10, maxTokens) : maxTokens
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    for (let sent = 0; sent < length && !res.destroyed; sent++) {
      res.write('data: token\n\n')
      await new Promise(resolve => setTimeout(resolve, everyMs))
    }
    res.end()
  })
  return listening(server, port)
}

function countTokens(text: string): number {
  return text.match(/token|[^\s:]+(?=\s|$)/g)?.filter(word => word !== 'data').length ?? 0
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString() || '{}'
}

function listening(server: Server, port: number): Promise<Server> {
  return new Promise(resolve => server.listen(port, '127.0.0.1', () => resolve(server)))
}

const portOf = (server: Server) => (server.address() as AddressInfo).port

if (process.argv[1] === import.meta.filename) {
  const model = await startModel(0, 50)
  const proxy = await startProxy(3000, `http://127.0.0.1:${portOf(model)}`)
  console.log(`curl -N -H 'X-User: ada' -d '{"prompt":"hello"}' http://127.0.0.1:${portOf(proxy)}`)
}
