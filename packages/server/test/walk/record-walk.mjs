// Sends requests through a gateway in this process after the code has warmed up, and prints which functions of the server
// ran for the last.
//
//   node record-walk.mjs passed|refused

import { once } from 'node:events'
import { createServer } from 'node:http'
import { slidingWindowCounter } from 'headgate'
import { defineConfig } from 'headgate/config'
import { recordCalls } from '../../../headgate/test/walk/record-calls.mjs'
import { startFront } from '../../dist/service/front.js'
import { createDeciding } from '../../dist/service/service.js'

const [kind] = process.argv.slice(2)
const upstream = createServer((_req, res) => res.end('hello')).listen(0, '127.0.0.1')
await once(upstream, 'listening')
const limit = kind === 'refused' ? 0 : 1_000
const config = defineConfig({
  policies: { api: slidingWindowCounter({ limit, window: '1h' }) },
  default: { policy: 'api' },
  routes: [{ match: { path: '/things' }, upstream: `http://127.0.0.1:${upstream.address().port}` }],
})
const log = () => {}
const deciding = createDeciding({ config, log })
const front = await startFront(deciding, {
  config,
  host: '127.0.0.1',
  port: 0,
  bounds: {},
  upstream: null,
  demo: false,
  log,
})
const statuses = { passed: 200, refused: 429 }

async function request() {
  const response = await fetch(`${front.gatewayUrl}/things/7`)
  await response.text()
  if (response.status !== statuses[kind])
    throw new Error(`expected ${statuses[kind]}; got ${response.status}`)
}

process.stdout.write(`${JSON.stringify(await recordCalls('/server/dist/', request))}\n`)
await front.stop()
await deciding.gate.close()
upstream.closeAllConnections()
upstream.close()
