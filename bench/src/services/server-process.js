/**
 * Runs Headgate's HTTP and gRPC services in its own process, and beside each the simplest server of its kind. Reports
 * the port of each and, on request, the processor time that the process has used.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Server, ServerCredentials } from '@grpc/grpc-js'
import { createAdminServer } from '@headgate/server/dist/admin/admin-server.js'
import { decisionEndpoints } from '@headgate/server/dist/decision-api/decision-endpoints.js'
import { METHOD } from '@headgate/server/dist/envoy/grpc/wire-format.js'
import { startEnvoy } from '@headgate/server/dist/envoy/start-envoy.js'
import { forwardAuthEndpoint } from '@headgate/server/dist/forward-auth/forward-auth-endpoint.js'
import { createLimiter } from 'headgate'
import { defineConfig } from 'headgate/config'
import { identifyByConfig } from 'headgate/identify'
import { redisStore } from 'headgate/redis'
import { createClient } from 'redis'

const [redisUrl] = process.argv.slice(2)
const LIMIT = 4_000_000_000
const config = defineConfig({
  policies: { api: { algorithm: 'sliding-window-counter', limit: LIMIT, window: '1h' } },
  default: { policy: 'api' },
})
const store = redisUrl === undefined ? undefined : redisStore(createClient({ url: redisUrl }))
const limiter = createLimiter({ config, ...(store && { store }) })
const identify = identifyByConfig(config)
const log = () => {}

const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'))
const configPath = join(folder, 'edge.yaml')
writeFileSync(
  configPath,
  `domain: edge\ndescriptors:\n${['a', 'b', 'c', 'd'].map(key => `  - { key: ${key}, rate_limit: { unit: hour, requests_per_unit: ${LIMIT} } }`).join('\n')}\n`,
)
const envoy = await startEnvoy(
  { configPath, host: '127.0.0.1', port: 0, tls: null, shadow: false, headers: false, metadata: false },
  limiter,
  log,
)
rmSync(folder, { recursive: true })

/** @param {import('node:http').Server} server @returns {Promise<number>} */
function portOf(server) {
  return new Promise(resolve => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

const bareHttp = createServer((req, res) => {
  let text = ''
  req.on('data', chunk => {
    text += chunk
  })
  req.on('end', () => {
    if (text !== '') JSON.parse(text)
    const body = '{"allowed":true}\n'
    res.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length })
    res.end(body)
  })
})
const api = createAdminServer({
  endpoints: [
    ...decisionEndpoints(limiter, log),
    forwardAuthEndpoint({ limiter, log, identify: () => identify }),
  ],
  tokens: [],
  names: [],
  log,
})

/** Exchanges the same messages and decides nothing. */
const emptyGrpc = new Server()
const status = { code: 1, currentLimit: { requestsPerUnit: LIMIT, unit: 3 }, limitRemaining: 1 }
emptyGrpc.addService(
  { ShouldRateLimit: METHOD },
  {
    /** @type {import('@grpc/grpc-js').handleUnaryCall<{ descriptors?: unknown[] }, object>} */
    ShouldRateLimit: ({ request }, answer) =>
      answer(null, { overallCode: 1, statuses: (request.descriptors ?? []).map(() => status) }),
  },
)
const emptyGrpcPort = await new Promise((resolve, reject) => {
  emptyGrpc.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) =>
    error === null ? resolve(port) : reject(error),
  )
})
await store?.ready()
process.on('message', () => process.send?.({ cpu: process.cpuUsage() }))
process.send?.({
  ports: {
    bareHttp: await portOf(bareHttp),
    api: await portOf(api),
    emptyGrpc: emptyGrpcPort,
    envoy: envoy.port,
  },
})
