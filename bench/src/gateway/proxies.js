/** The reverse proxies that are loaded, each in a process of its own before the same upstream. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** @typedef {{ name: string, port: number, cpuUs(): number, stop(): void }} Proxy */

const MAIN = fileURLToPath(new URL('../../../packages/server/dist/main.js', import.meta.url))
const POLICY = `policies:
  api: { algorithm: sliding-window-counter, limit: 4000000000, window: 1m }
default: { policy: api }
`
/** Of a process, in the ticks of /proc. */
const US_PER_TICK = 10_000

/** A port that is free now. @returns {Promise<number>} */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  server.close()
  await once(server, 'close')
  return port
}

/** @param {number} pid */
function cpuUsOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * US_PER_TICK
}

/**
 * @param {string} name @param {string} command @param {readonly string[]} args
 * @param {{ port?: number, ready: RegExp | null }} how The port is read from what it prints, unless it is known.
 * @returns {Promise<Proxy>}
 */
async function start(name, command, args, { port, ready }) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const pid = /** @type {number} */ (child.pid)
  let text = ''
  child.stdout.setEncoding('utf8').on('data', chunk => {
    text += chunk
  })
  while (ready !== null && !ready.test(text)) await once(child.stdout, 'data')
  if (ready === null) await new Promise(resolve => setTimeout(resolve, 500))
  const found = port ?? Number(/** @type {RegExp} */ (ready).exec(text)?.[1])
  return { name, port: found, cpuUs: () => cpuUsOf(pid), stop: () => void child.kill() }
}

/** @param {string} file @param {string} name @param {...string} args */
export function startNode(name, file, ...args) {
  const path = fileURLToPath(new URL(file, import.meta.url))
  return start(name, process.execPath, [path, ...args], { ready: /^(\d+)$/m })
}

/** @param {number} upstreamPort */
export async function startGateway(upstreamPort) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'))
  const config = join(folder, 'headgate.yaml')
  writeFileSync(config, POLICY)
  const args = ['serve', '--config', config, '--port', '0', '--admin-port', '0']
  const upstream = ['--upstream', `http://127.0.0.1:${upstreamPort}`]
  const proxy = await start('headgate serve', process.execPath, [MAIN, ...args, ...upstream], {
    ready: /gateway +http:\/\/127\.0\.0\.1:(\d+)/,
  })
  rmSync(folder, { recursive: true, force: true })
  return proxy
}

/** In one process, as the others. @param {number} upstreamPort */
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
  return start('nginx, limit_req', nginx, ['-c', join(folder, 'nginx.conf'), '-e', 'stderr'], {
    port,
    ready: null,
  })
}
