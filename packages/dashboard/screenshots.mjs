// `npm run screenshots`: starts a gateway with traffic of good and bad callers, and takes the pictures that the docs show.

import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium } from 'playwright-core'
import { ensureProgram } from '../../scripts/system-programs.mjs'

const ASSETS = fileURLToPath(new URL('../../docs/assets/', import.meta.url))
const MAIN = fileURLToPath(new URL('../server/dist/main.js', import.meta.url))
const TRAFFIC_MS = 25_000
const POLICY = `policies:
  api: { algorithm: sliding-window-log, limit: 20, window: 10s }
  search: { algorithm: sliding-window-log, limit: 5, window: 10s }
default: { policy: api }
rules:
  - { name: search, match: { path: /search/* }, policy: search }
identify:
  - user: { header: x-user, from: everybody }
  - ip
`
const BAD = ['scraper', 'retry-loop']
const GOOD = ['ada', 'bob', 'eve', 'kim', 'lea', 'max', 'ned', 'zoe']

async function serve(folder) {
  const file = join(folder, 'headgate.yaml')
  await writeFile(file, POLICY)
  const args = ['serve', '--config', file, '--demo', '--show-subjects', '--port', '0', '--admin-port', '0']
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let text = ''
  await new Promise(resolve => {
    child.stdout.on('data', chunk => {
      text += chunk
      if (text.includes('Stop with Ctrl-C')) resolve()
    })
  })
  const [gateway, admin] = text.match(/http:\/\/127\.0\.0\.1:\d+/g)
  return { child, gateway, admin: text.match(/decision API +(\S+)/)?.[1] ?? admin }
}

async function drive(gateway, untilMs) {
  for (let turn = 0; Date.now() < untilMs; turn++) {
    const user = turn % 3 === 0 ? BAD[turn % 2] : GOOD[turn % GOOD.length]
    const path = turn % 7 === 0 ? '/search/x' : '/orders'
    await (await fetch(`${gateway}${path}`, { headers: { 'x-user': user } })).arrayBuffer()
    await new Promise(resolve => setTimeout(resolve, 5 + 20 * Math.abs(Math.sin(turn / 300))))
  }
}

const folder = await mkdtemp(join(tmpdir(), 'headgate-screenshots-'))
const { child, gateway, admin } = await serve(folder)
const browser = await chromium.launch({
  executablePath: await ensureProgram('chromium'),
  args: ['--no-sandbox'],
})
try {
  const traffic = drive(gateway, Date.now() + TRAFFIC_MS)
  const size = { width: 1280, height: 960 }
  const pages = await Promise.all(
    ['light', 'dark'].map(colorScheme => browser.newPage({ viewport: size, colorScheme })),
  )
  await Promise.all(pages.map(page => page.goto(`${admin}/`)))
  await traffic
  const [light, dark] = pages
  await light.screenshot({ path: join(ASSETS, 'dashboard.png') })
  await dark.screenshot({ path: join(ASSETS, 'dashboard-dark.png') })
} finally {
  await browser.close()
  child.kill('SIGTERM')
  await rm(folder, { recursive: true, force: true })
}
