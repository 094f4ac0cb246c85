/** The dashboard in a real browser, on a real `headgate serve` with real traffic. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type HeadgateProcess, serveHeadgateIn } from '../../server/test/support/headgate-process.ts'
import { openPage, startBrowser } from './browser.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const HOSTILE = '<img src=x onerror=alert(1)>'
const folder = mkdtempSync(join(tmpdir(), 'headgate-dashboard-'))
const FILE = join(folder, 'headgate.yaml')
writeFileSync(
  FILE,
  `policies:
  api: { algorithm: sliding-window-log, limit: 5, window: 1h }
default: { policy: api }
rules:
  - { name: hostile, match: { path: /hostile }, policy: api, scope: hostile }
identify:
  - user: { header: x-user, from: everybody }
  - ip
`,
)

let server: HeadgateProcess
let browser: Browser
beforeAll(async () => {
  ;[server, browser] = await Promise.all([
    serveHeadgateIn({ cwd: folder }, '--config', FILE, '--demo', '--show-subjects'),
    startBrowser(),
  ])
})
afterAll(async () => {
  await browser?.close()
  await server?.end('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
})

async function ask(user: string, path = '/'): Promise<number> {
  const response = await fetch(`${server.gatewayUrl}${path}`, { headers: { 'x-user': user } })
  await response.arrayBuffer()
  return response.status
}

async function exhaust(user: string): Promise<void> {
  for (let request = 0; request < 8; request++) await ask(user)
  expect(await ask(user)).toBe(429)
}

const figure = (page: Page, name: string) => page.locator('.figure', { hasText: name }).locator('dd')

describe('the dashboard', () => {
  it('the dashboard shows live figures that move with the traffic, without a complaint of the browser', async () => {
    const { page, complaints } = await openPage(browser, `${server.adminUrl}/`)
    await page.getByText('Live', { exact: true }).waitFor()
    await exhaust('ada')
    await page.locator('.figure.accent dd').waitFor()
    expect(Number(await figure(page, 'denied a second').textContent())).toBeGreaterThan(0)
    await page.getByRole('link', { name: 'user:ada' }).waitFor()
    expect(complaints).toEqual([])
    await page.close()
  })

  it('the dashboard sets an override that the next request obeys, and resets a caller', async () => {
    await exhaust('bob')
    const { page } = await openPage(browser, `${server.adminUrl}/`)
    await page.getByRole('button', { name: 'Override user:bob' }).click()
    await page.getByRole('spinbutton', { name: 'Requests a minute' }).fill('50')
    await page.getByLabel('Reason').fill('launch day')
    await page.getByRole('button', { name: 'Set override' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await ask('bob')).toBe(200)

    await exhaust('eve')
    await page.getByRole('button', { name: 'Reset user:eve' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect(await ask('eve')).toBe(200)
    await page.close()
  })

  it('the dashboard shows what a caller has left of each limit', async () => {
    await exhaust('kim')
    const { page } = await openPage(browser, `${server.adminUrl}/`)
    await page.getByRole('link', { name: 'user:kim' }).click()
    await page.getByRole('heading', { name: 'user:kim' }).waitFor()
    const row = page.getByRole('row', { name: /^api\.log-1h \d/ })
    await row.waitFor()
    expect(await row.textContent()).toMatch(/^api\.log-1h05/)
    await page.close()
  })

  it('the dashboard switches all limits off and on again, and says who did it', async () => {
    await exhaust('lea')
    const { page } = await openPage(browser, `${server.adminUrl}/#/control`)
    await page.getByRole('button', { name: 'Switch limits off' }).click()
    await page.getByRole('button', { name: 'Switch off' }).click()
    await page.getByText('off: every request passes').waitFor()
    expect(await ask('lea')).toBe(200)
    await page.getByRole('cell', { name: 'set control: limits off, multiplier 1' }).waitFor()
    await page.getByRole('button', { name: 'Switch limits on' }).click()
    await page.getByRole('button', { name: 'Switch on', exact: true }).click()
    await page.getByRole('button', { name: 'Switch limits off' }).waitFor()
    expect(await ask('lea')).toBe(429)
    await page.close()
  })

  it('the dashboard says which rule speaks for a request, and shows hostile names as text', async () => {
    for (let request = 0; request < 8; request++) await ask(HOSTILE, '/hostile')
    const { page, complaints } = await openPage(browser, `${server.adminUrl}/`)
    await page.getByRole('link', { name: `user:${HOSTILE}` }).waitFor()
    await page.getByRole('link', { name: 'Violations' }).click()
    await page
      .getByRole('link', { name: `user:${HOSTILE}` })
      .first()
      .waitFor()
    await page.getByRole('link', { name: 'Policy' }).click()
    await page.getByLabel('Request', { exact: true }).fill('GET /hostile')
    await page.getByRole('button', { name: 'Explain' }).click()
    await page.getByText('rule hostile').waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    expect(complaints).toEqual([])
    await page.close()
  })

  it('the dashboard comes back by itself when the server was away, and says so meanwhile', async () => {
    const other = await serveHeadgateIn({ cwd: folder }, '--config', FILE, '--demo')
    const { page } = await openPage(browser, `${other.adminUrl}/`)
    await page.getByText('Live', { exact: true }).waitFor()
    await other.end('SIGTERM')
    await page.getByText(/Not connected; figures of/).waitFor()
    const port = new URL(other.adminUrl).port
    const again = await serveHeadgateIn({ cwd: folder }, '--config', FILE, '--demo', '--admin-port', port)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.close()
    await again.end('SIGTERM')
  })

  it.each(['', 'violations', 'policy', 'shadow', 'control'])(
    'the page "%s" has nothing serious that axe objects to, light and dark',
    async name => {
      const { page } = await openPage(browser, `${server.adminUrl}/#/${name}`)
      await page.getByText('Live', { exact: true }).waitFor()
      await page.evaluate(AXE)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        expect(await seriousFindings(page)).toEqual([])
      }
      await page.close()
    },
  )
})

describe('with tokens', () => {
  it('a dashboard with tokens shows nothing but a question for the token, and the figures to who has one', async () => {
    const secret = 'a-token-of-sixteen-or-more'
    const closed = await serveHeadgateIn(
      { cwd: folder, env: { HEADGATE_ADMIN_TOKEN_OPS: secret } },
      ...['--config', FILE, '--demo', '--admin-token', 'ops:administer:env:HEADGATE_ADMIN_TOKEN_OPS'],
    )
    try {
      expect((await fetch(`${closed.adminUrl}/`)).status).toBe(401)
      expect((await fetch(`${closed.adminUrl}/v1/stats`)).status).toBe(401)
      const { page } = await openPage(browser, `${closed.adminUrl}/`)
      await page.getByLabel('Token').fill('another')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('This token is not known here.').waitFor()
      await page.getByLabel('Token').fill(secret)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('Live', { exact: true }).waitFor()
      await page.close()
    } finally {
      await closed.end('SIGTERM')
    }
  })
})

/** The findings of axe that keep somebody from using the page. Its script was evaluated by the browser's own tools, which no policy forbids. */
async function seriousFindings(page: Page): Promise<readonly string[]> {
  const violations = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as {
      axe: { run(): Promise<{ violations: { id: string; impact: string; nodes: { html: string }[] }[] }> }
    }
    return (await axe.run()).violations.map(({ id, impact, nodes }) => ({ id, impact, html: nodes[0]?.html }))
  })
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, html }) => `${id}: ${html}`)
}
