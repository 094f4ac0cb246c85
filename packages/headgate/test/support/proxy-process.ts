import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findFreePort } from './free-port.ts'
import { systemProgram } from './system-program.ts'
import { waitUntil } from './wait-until.ts'

/** A proxy that a test started on a free port. */
export interface ProxyProcess {
  readonly url: string
  stop(): Promise<void>
}

/** Returns the first code block of a kind in a guide, with other ports. */
export function snippet(guide: string, kind: string, ports: Readonly<Record<number, number>>): string {
  const text = readFileSync(new URL(`../../../../docs/guide/${guide}`, import.meta.url), 'utf8')
  const block = new RegExp(`\`\`\`${kind}\n([^]*?)\`\`\``).exec(text)?.[1]
  if (block === undefined) throw new Error(`${guide}: expected a block of ${kind}`)
  return Object.entries(ports).reduce(
    (found, [port, other]) => found.replaceAll(`:${port}`, `:${other}`),
    block,
  )
}

/** Starts nginx with these contents of its `http` block, whose server listens on a free port instead of 80. */
export async function startNginx(http: string): Promise<ProxyProcess> {
  const path = await systemProgram('nginx')
  const folder = mkdtempSync(join(tmpdir(), 'headgate-nginx-'))
  for (const name of ['body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']) mkdirSync(join(folder, name))
  const port = await findFreePort()
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, nginxConf(folder, http.replace('listen 80;', `listen 127.0.0.1:${port} backlog=4096;`)))
  const args = ['-e', join(folder, 'error.log'), '-p', folder, '-c', file]
  const child = spawn(path, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  return listening(child, port, folder)
}

/** Starts Caddy with these contents of its site block. */
export async function startCaddy(site: string): Promise<ProxyProcess> {
  const path = await systemProgram('caddy')
  const folder = mkdtempSync(join(tmpdir(), 'headgate-caddy-'))
  const port = await findFreePort()
  const file = join(folder, 'Caddyfile')
  const options = '{\n  admin off\n  auto_https off\n}'
  writeFileSync(file, `${options}\nhttp://127.0.0.1:${port} {\n  bind 127.0.0.1\n${site}\n}\n`)
  const env = { ...process.env, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const args = ['run', '--config', file, '--adapter', 'caddyfile']
  return listening(spawn(path, args, { stdio: ['ignore', 'ignore', 'pipe'], env }), port, folder)
}

/** Starts HAProxy with this configuration, whose frontend listens on a free port instead of 80, and its Lua file. */
export async function startHaproxy(configuration: string, lua: string): Promise<ProxyProcess> {
  const path = await systemProgram('haproxy')
  const folder = mkdtempSync(join(tmpdir(), 'headgate-haproxy-'))
  const port = await findFreePort()
  writeFileSync(join(folder, 'headgate.lua'), lua)
  const file = join(folder, 'haproxy.cfg')
  const changed = configuration
    .replace('bind :80', `bind 127.0.0.1:${port}`)
    .replace('/etc/haproxy/headgate.lua', join(folder, 'headgate.lua'))
  writeFileSync(file, changed)
  return listening(spawn(path, ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] }), port, folder)
}

const APACHE_MODULES = ['mpm_event', 'authz_core', 'headers', 'proxy', 'proxy_http', 'proxy_balancer']
const APACHE_FOLDERS = [
  '/usr/lib/apache2/modules',
  '/etc/httpd/modules',
  '/usr/lib/apache2',
  '/opt/homebrew/lib/httpd/modules',
]

/** Starts Apache with these contents of its main server, on a free port. */
export async function startApache(main: string): Promise<ProxyProcess> {
  const path = await systemProgram('apache2')
  const folder = mkdtempSync(join(tmpdir(), 'headgate-apache-'))
  const port = await findFreePort()
  const modules = APACHE_FOLDERS.find(one => existsSync(join(one, 'mod_proxy.so')))
  const load = [...APACHE_MODULES, 'lbmethod_byrequests', 'slotmem_shm'].map(
    name => `LoadModule ${name}_module ${modules}/mod_${name}.so`,
  )
  const file = join(folder, 'apache.conf')
  const own = [`ServerRoot ${folder}`, `PidFile ${folder}/pid`, `DefaultRuntimeDir ${folder}`]
  const server = [`Listen 127.0.0.1:${port}`, 'ServerName localhost', `ErrorLog ${folder}/error.log`]
  writeFileSync(file, [...load, ...own, ...server, main].join('\n'))
  const args = ['-X', '-f', file]
  return listening(spawn(path, args, { stdio: ['ignore', 'ignore', 'pipe'] }), port, folder)
}

function nginxConf(folder: string, http: string): string {
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    name => `${name}_temp_path ${folder}/${name.replace('client_', '')};`,
  )
  return `
daemon off;
master_process off;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
worker_rlimit_nofile 16384;
events { worker_connections 16384; }
http {
  access_log off;
  ${temp.join('\n  ')}
  ${http}
}
`
}

async function listening(child: ChildProcess, port: number, folder: string): Promise<ProxyProcess> {
  let complaint = ''
  child.stderr?.on('data', text => {
    complaint += text
  })
  const ended = once(child, 'exit')
  await waitUntil('listening', async () => child.exitCode !== null || (await canConnect(port)))
  if (child.exitCode !== null) throw new Error(`it ended before it listened: ${complaint}`)
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      child.kill('SIGTERM')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Whether somebody listens on a port of 127.0.0.1. */
export function canConnect(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })
}
