/** Starts the reverse proxies, each in its own process in front of the same upstream. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startListener, startGateway as startRigGateway } from '../rig/gateway.js'
import { cpuSecondsOf } from '../rig/proc.js'

/** @typedef {{ name: string, port: number, cpuUs(): number, stop(): void }} Proxy */

const POLICY = `policies:
  api: { algorithm: sliding-window-counter, limit: 4000000000, window: 1m }
default: { policy: api }
`

/** Finds a free port. @returns {Promise<number>} */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  server.close()
  await once(server, 'close')
  return port
}

/** @param {string} name @param {{ pid: number, port: number, stop(): unknown }} running @returns {Proxy} */
function asProxy(name, { pid, port, stop }) {
  return { name, port, cpuUs: () => cpuSecondsOf(pid) * 1e6, stop: () => void stop() }
}

/** @param {string} file @param {string} name @param {...string} args */
export async function startNode(name, file, ...args) {
  return asProxy(name, await startListener(new URL(file, import.meta.url).href, ...args))
}

/** @param {number} upstreamPort */
export async function startGateway(upstreamPort) {
  return asProxy(
    'headgate serve',
    await startRigGateway(POLICY, ['--upstream', `http://127.0.0.1:${upstreamPort}`]),
  )
}

/** Starts nginx in one process, like the other proxies. @param {number} upstreamPort */
export async function startNginx(upstreamPort) {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'headgate-nginx-'))
  mkdirSync(join(folder, 'tmp'))
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${folder}/tmp/${name};`,
  )
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log stderr;
events { worker_connections 1024; }
http { access_log off; ${paths.join(' ')}
  upstream app { server 127.0.0.1:${upstreamPort}; keepalive 128; }
  limit_req_zone $binary_remote_addr zone=all:10m rate=1000000r/s;
  server { listen 127.0.0.1:${port}; keepalive_requests 1000000000; limit_req zone=all burst=1000000 nodelay;
    location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; } } }
`,
  )
  const nginx = process.env.HEADGATE_NGINX ?? 'nginx'
  const child = spawn(nginx, ['-c', join(folder, 'nginx.conf'), '-e', 'stderr'], { stdio: 'inherit' })
  await untilItListens(port)
  return asProxy('nginx, limit_req', { pid: Number(child.pid), port, stop: () => child.kill() })
}

/** @param {number} port */
async function untilItListens(port) {
  for (let attempt = 0; attempt < 100; attempt++) {
    const socket = connect(port, '127.0.0.1')
    const listens = await new Promise(resolve => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    socket.destroy()
    if (listens) return
    await sleep(50)
  }
  throw new Error(`nothing listens on port ${port}`)
}
