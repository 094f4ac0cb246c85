// `node packages/dashboard/screenshots.mjs`: starts a gateway on Redis with good and bad callers, and takes the pictures for the docs.

import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { ensureProgram } from '../../scripts/system-programs.mjs'

const ASSETS = fileURLToPath(new URL('../../docs/assets/', import.meta.url))
const MAIN = fileURLToPath(new URL('../server/dist/main.js', import.meta.url))
/** Enough for the minute that the first charts show. */
const TRAFFIC_MS = 60_000
const POLICY = `service: shop
policies:
  search: { algorithm: sliding-window-log, limit: 60, window: 10s }
  login: { algorithm: token-bucket, capacity: 5, refillPerSecond: 0.2 }
  checkout: { limits: { algorithm: sliding-window-log, limit: 30, window: 1m }, mode: shadow }
tiers:
  anonymous: { minute: 20 }
  free: { minute: 300, hour: 20000, month: 500000, burst: 2 }
  internal: { minute: 100000 }
rules:
  - { name: search, match: { path: /search/* }, policy: search }
  - { name: login, match: { method: POST, path: /login }, policy: login }
  - { name: checkout, match: { path: /checkout }, policy: checkout }
identify:
  - internal: { header: x-service, from: everybody, tier: internal, perAddress: off }
  - user: { header: x-user, from: everybody, tier: free, perAddress: off }
  - ip
masks: { user: whole, internal: whole }
`
const PEOPLE = ['ada', 'bob', 'chloe', 'dmitri', 'eve', 'farid', 'grace', 'hugo', 'ines', 'jun', 'kim', 'lea']
const BAD = [
  { headers: { 'x-user': 'retry-loop' }, path: '/orders', everyMs: 30 },
  { headers: { 'x-user': 'scraper-7' }, path: '/search/shoes', everyMs: 70 },
  { headers: { 'x-user': 'password-guesser' }, path: '/login', method: 'POST', everyMs: 180 },
  { headers: {}, path: '/', everyMs: 400 },
]
/** The page of each picture. The docs show the first two; look at all of them after a change. */
const PICTURES = [
  { name: 'dashboard', page: '', colorScheme: 'light', width: 1280, height: 1000 },
  { name: 'dashboard-dark', page: '', colorScheme: 'dark', width: 1280, height: 1000 },
  { name: 'dashboard-phone', page: '', colorScheme: 'light', width: 390, height: 844 },
]
const PAGES = ['', 'denials', 'policy', 'shadow', 'fleet', 'control', 'subject/user%3Aretry-loop']
const OTHERS = PAGES.flatMap(page =>
  [320, 1280, 2560].flatMap(width =>
    ['light', 'dark'].map(colorScheme => {
      const name = `look-${page.split('/')[0] || 'now'}-${width}-${colorScheme}`
      return { name, page, colorScheme, width, height: 900 }
    }),
  ),
)
/** `--all <folder>` takes pictures of every page there, too: narrow and wide, light and dark. */
const everywhere = process.argv[2] === '--all' ? (process.argv[3] ?? tmpdir()) : null

function freePort() {
  return new Promise(resolve => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

async function serve(folder, redisPort) {
  const file = join(folder, 'headgate.yaml')
  await writeFile(file, POLICY)
  const redis = `redis://127.0.0.1:${redisPort}`
  const ports = ['--port', '0', '--admin-port', '0']
  // Browser and callers share the machine with it.
  const args = ['serve', '--config', file, '--demo', '--redis', redis, '--deadline', '1000', ...ports]
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  await new Promise(resolve => {
    child.stdout.on('data', chunk => {
      text += chunk
      if (text.includes('Stop with Ctrl-C')) resolve()
    })
  })
  return { child, gateway: /gateway +(\S+)/.exec(text)?.[1], admin: /decision API +(\S+)/.exec(text)?.[1] }
}

async function ask(gateway, { path, headers, method = 'GET' }) {
  try {
    await (await fetch(`${gateway}${path}`, { method, headers })).arrayBuffer()
  } catch {
    // The connection was closed; the next request opens another.
  }
}

/** Simulates people who come and go, and one internal service. */
async function good(gateway, isOver) {
  const paths = ['/orders', '/search/hats', '/checkout', '/']
  for (let turn = 0; !isOver(); turn++) {
    const isService = turn % 3 === 0
    const person = PEOPLE[(turn * 7) % PEOPLE.length]
    const headers = isService ? { 'x-service': 'billing' } : { 'x-user': person }
    await ask(gateway, {
      path: isService ? '/orders' : paths[Math.floor(turn / PEOPLE.length) % paths.length],
      headers,
    })
    await pause(45 + 35 * Math.sin(Date.now() / 4_000))
  }
}

/** Simulates a caller that starts to misbehave after a while and does not stop. */
async function bad(gateway, isOver, { everyMs, ...request }) {
  await pause(everyMs * 80)
  while (!isOver()) {
    await ask(gateway, request)
    await pause(everyMs)
  }
}

const folder = await mkdtemp(join(tmpdir(), 'headgate-screenshots-'))
const redisPort = await freePort()
const redisArgs = ['--port', String(redisPort), '--bind', '127.0.0.1', '--save', '', '--dir', folder]
const redis = spawn(await ensureProgram('redis-server'), redisArgs, { stdio: 'ignore' })
const { child, gateway, admin } = await serve(folder, redisPort)
const browser = await chromium.launch({
  executablePath: await ensureProgram('chromium'),
  args: ['--no-sandbox'],
})
try {
  let over = false
  const isOver = () => over
  const traffic = [good(gateway, isOver), good(gateway, isOver), ...BAD.map(one => bad(gateway, isOver, one))]
  const pictures = everywhere === null ? PICTURES : [...PICTURES, ...OTHERS]
  await pause(TRAFFIC_MS)
  for (const { name, page: path, colorScheme, width, height } of pictures) {
    const page = await browser.newPage({ viewport: { width, height }, colorScheme })
    await page.goto(`${admin}/#/${path}`)
    await page.getByText('Live', { exact: true }).waitFor()
    await pause(1_000)
    const isForDocs = PICTURES.some(picture => picture.name === name)
    await page.screenshot({
      path: join(isForDocs ? ASSETS : everywhere, `${name}.png`),
      fullPage: !isForDocs,
    })
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    if (wider > 0) console.log(`${name}: ${wider} px wider than the window`)
    const cut = await page.evaluate(() =>
      [...document.querySelectorAll('.panel')]
        .filter(panel => panel.scrollWidth > panel.clientWidth)
        .map(panel => panel.querySelector('caption, h3')?.textContent),
    )
    if (cut.length > 0) console.log(`${name}: cut off: ${cut.join(', ')}`)
    await page.close()
  }
  over = true
  await Promise.all(traffic)
} finally {
  await browser.close()
  child.kill('SIGTERM')
  redis.kill('SIGTERM')
  await rm(folder, { recursive: true, force: true })
}
