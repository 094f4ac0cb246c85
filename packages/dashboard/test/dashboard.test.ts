/** The dashboard in a real browser, on a real `headgate serve` with real traffic. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { type HeadgateProcess, serveHeadgateIn } from '../../server/test/support/headgate-process.ts'
import { rawRequest } from '../../server/test/support/raw-http.ts'
import { openPage, seriousFindings, startBrowser, tooWide } from './browser.ts'

const HOSTILE = '<img src=x onerror=alert(1)>'
const folder = mkdtempSync(join(tmpdir(), 'headgate-dashboard-'))
const FILE = join(folder, 'headgate.yaml')
writeFileSync(
  FILE,
  `policies:
  api: { algorithm: sliding-window-log, limit: 5, window: 1h }
  plan: { algorithm: quota, limit: 3, per: month }
default: { policy: api }
rules:
  - { name: paid, match: { path: /paid }, policy: plan }
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

const PAGES = ['', 'denials', 'policy', 'fleet', 'shadow', 'control', 'find', 'subject/user%3Aada']

async function goTo(page: Page, name: string): Promise<void> {
  await page.goto(`${server.adminUrl}/#/${name}`)
  await page.locator('main .panel').first().waitFor()
}

const figure = (page: Page, name: string) => page.locator('.figure', { hasText: name }).locator('dd')

describe('the dashboard', () => {
  it('the dashboard shows live stats that move with the traffic, without a complaint of the browser', async () => {
    const { page, complaints } = await openPage(browser, `${server.adminUrl}/`)
    await page.getByText('Live', { exact: true }).waitFor()
    await exhaust('ada')
    await page.locator('.figure.accent dd').waitFor()
    expect(Number(await figure(page, 'denied/s').textContent())).toBeGreaterThan(0)
    await page.getByRole('link', { name: 'user:ada' }).waitFor()
    expect(complaints).toEqual([])
    await page.close()
  })

  it('the dashboard sets an override that the next request obeys, and resets a caller', async () => {
    await exhaust('bob')
    const { page } = await openPage(browser, `${server.adminUrl}/`)
    await page.getByRole('button', { name: 'Override user:bob' }).click()
    await page.getByRole('spinbutton', { name: 'log-1h' }).fill('50')
    await page.getByText('sliding-window-log 50 in 1h').waitFor()
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

  it('the dashboard finds a caller by the id of a denied request, and says why it was denied', async () => {
    await exhaust('mia')
    const denied = await fetch(`${server.gatewayUrl}/hostile?secret=1`, { headers: { 'x-user': 'mia' } })
    const ids: string[] = []
    for (let request = 0; request < 6; request++) {
      const response = await fetch(`${server.gatewayUrl}/hostile?secret=1`, { headers: { 'x-user': 'mia' } })
      if (response.status === 429) ids.push(response.headers.get('x-request-id') as string)
      await response.arrayBuffer()
    }
    await denied.arrayBuffer()
    const { page, complaints } = await openPage(browser, `${server.adminUrl}/`)
    const find = async (text: string) => {
      await page.getByRole('searchbox').fill(text)
      await page.getByRole('searchbox').press('Enter')
    }
    await page.getByText('Live', { exact: true }).waitFor()
    // A denial is kept at the end of its second.
    await page.waitForTimeout(1_200)
    await find(ids[0] as string)
    await page.getByRole('heading', { name: 'user:mia' }).waitFor()
    const why = page.locator('section', { hasText: 'Last denied' }).first()
    await why.getByText('GET /hostile', { exact: true }).waitFor()
    await why.getByText('api.log-1h', { exact: true }).waitFor()
    await find('ada')
    await page.getByRole('heading', { name: 'user:ada' }).waitFor()
    await find('192.0.2.77')
    await page.getByRole('heading', { name: 'ip:192.0.2.77' }).waitFor()
    expect(page.url()).not.toContain('192.0.2.77')
    await find('somebody new')
    await page.getByRole('row', { name: /^user:somebody new/ }).waitFor()
    expect(complaints).toEqual([])
    await page.close()
  })

  it('the dashboard bans a caller, whatever it asks for, and lifts the ban', async () => {
    expect(await ask('zoe')).toBe(200)
    const { page } = await openPage(browser, `${server.adminUrl}/#/subject/user%3Azoe`)
    await page.getByRole('button', { name: 'Ban' }).click()
    await page.getByLabel('Reason').fill('abuse')
    await page.getByRole('dialog').getByRole('button', { name: 'Ban' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    expect([await ask('zoe'), await ask('zoe', '/hostile')]).toEqual([429, 429])
    await page.getByText('Everything: banned, set by dashboard: abuse').waitFor()
    await page.getByRole('button', { name: 'Remove' }).click()
    await expect.poll(() => page.getByRole('button', { name: 'Remove' }).count()).toBe(0)
    expect(await ask('zoe')).toBe(200)
    await page.close()
  })

  it('the dashboard shows what a caller has left of each limit', async () => {
    await exhaust('kim')
    const { page } = await openPage(browser, `${server.adminUrl}/`)
    await page.getByRole('link', { name: 'user:kim' }).click()
    await page.getByRole('heading', { name: 'user:kim' }).waitFor()
    const row = page.getByRole('row', { name: /^api\.log-1h default/ })
    await row.waitFor()
    const cells = await row.getByRole('cell').allTextContents()
    expect(cells.slice(-4, -1)).toEqual(['5', '0', '5'])
    await page.close()
  })

  it('the dashboard shows what a caller has used of its quotas, and a credit of it is used next', async () => {
    const statuses = [await ask('pia', '/paid'), await ask('pia', '/paid'), await ask('pia', '/paid')]
    expect([...statuses, await ask('pia', '/paid')]).toEqual([200, 200, 200, 429])
    const { page, complaints } = await openPage(browser, `${server.adminUrl}/`)
    await goTo(page, 'subject/user%3Apia')
    const quotas = page.getByRole('table', { name: 'Quotas' })
    const row = quotas.getByRole('row', { name: /^plan\.quota-month/ })
    await row.waitFor()
    const figures = async () => (await row.locator('td.number').allTextContents()).slice(0, 3)
    expect(await figures()).toEqual(['3', '3', '0'])
    const credit = async (id: string) => {
      await page.getByRole('button', { name: 'Credit plan.quota-month' }).click()
      await page.getByRole('spinbutton', { name: 'Units' }).fill('2')
      await page.getByLabel('Id, which credits once').fill(id)
      await page.getByRole('dialog').getByRole('button', { name: 'Credit' }).click()
    }
    await credit('invoice-1')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await expect.poll(figures).toEqual(['3', '3', '2'])
    expect([await ask('pia', '/paid'), await ask('pia', '/paid'), await ask('pia', '/paid')]).toEqual([
      200, 200, 429,
    ])
    await credit('invoice-1')
    await page.getByText('invoice-1 was credited already').waitFor()
    expect(await seriousFindings(page)).toEqual([])
    await page.getByRole('button', { name: 'Cancel' }).click()
    await expect.poll(figures).toEqual(['5', '3', '0'])
    expect(complaints).toEqual([])
    await page.setViewportSize({ width: 320, height: 740 })
    await expect.poll(() => tooWide(page)).toEqual([])
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
    await page.getByRole('link', { name: 'Denials' }).click()
    await page
      .getByRole('link', { name: `user:${HOSTILE}` })
      .first()
      .waitFor()
    await page.getByRole('link', { name: 'Policy' }).click()
    await page.getByLabel('Explain a request').fill('GET /hostile')
    await page.getByRole('button', { name: 'Check' }).click()
    await page.locator('pre', { hasText: 'rule hostile' }).waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    expect(complaints).toEqual([])
    await page.close()
  })

  it('the dashboard tries another policy file: its mistakes, whom it would deny, and how to save it', async () => {
    for (let request = 0; request < 4; request++) await ask('tried')
    const { page, complaints } = await openPage(browser, `${server.adminUrl}/`)
    await page.getByRole('link', { name: 'Policy' }).click()
    await page.getByRole('row', { name: /hostile \/hostile policy api/ }).waitFor()
    const file = page.getByLabel('Policy file')
    await expect.poll(() => file.inputValue()).toContain('limit: 5')
    const text = await file.inputValue()
    await file.fill(`${text}ruels: []\n`)
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByText('1 mistakes: this file cannot be used.').waitFor()
    await page.getByRole('button', { name: /^line \d+$/ }).click()
    await file.fill(text.replace('limit: 5', 'limit: 3'))
    await page.getByRole('button', { name: 'Check' }).click()
    await page.getByText('The file can be used.').waitFor()
    await page.getByText(/^This change would deny \d+ callers? more/).waitFor()
    await page.getByRole('row', { name: 'user:tried 1' }).waitFor()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download headgate.yaml' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('headgate.yaml')
    expect(await page.getByLabel('Text of a pull request').inputValue()).toContain('Change headgate.yaml')
    expect(await ask('tried')).toBe(200)
    expect(complaints).toEqual([])
    await page.close()
  })

  it('the dashboard charts other times, with what was changed in them', async () => {
    const { page, complaints } = await openPage(browser, `${server.adminUrl}/`)
    await ask('charted')
    const headers = { 'Content-Type': 'application/json' }
    const reset = { method: 'POST', headers, body: '{}' }
    expect((await fetch(`${server.adminUrl}/v1/subjects/user:charted/reset`, reset)).status).toBe(200)
    await page.reload()
    await page.getByText(/^\d+ changes? in this time$/).click()
    await page.getByText(/reset user:charted$/).waitFor()
    for (const [words, range] of [
      ['6 h', '6h'],
      ['7 days', '7d'],
    ]) {
      const answer = page.waitForResponse(response => response.url().endsWith(`?range=${range}`))
      await page.getByText(`${words}`, { exact: true }).click()
      const { points, stepMs } = (await (await answer).json()) as { points: object[]; stepMs: number }
      expect(points.length).toBeGreaterThan(0)
      expect(stepMs).toBe(range === '6h' ? 30_000 : 900_000)
      await page.getByRole('img', { name: /^Requests per second over time: now/ }).waitFor()
    }
    expect(complaints).toEqual([])
    await page.close()
  })

  it('the dashboard shows each process, and how its upstream answers', async () => {
    await ask('fleet')
    const { page } = await openPage(browser, `${server.adminUrl}/#/fleet`)
    const process = page.getByRole('row', { name: /this server/ })
    await process.getByText(/^\d+\.\d MB$/).waitFor()
    const decidedBy = async () => {
      await ask('fleet')
      return process.textContent()
    }
    await expect.poll(decidedBy).toContain('memory')
    const upstream = page.getByRole('row', { name: /^127\.0\.0\.1:/ })
    await upstream.waitFor()
    expect(await upstream.textContent()).toMatch(/ms/)
    await page.getByText('every breaker is closed').waitFor()
    await page.close()
  })

  it('the dashboard comes back by itself when the server was away, and says so meanwhile', async () => {
    const other = await serveHeadgateIn({ cwd: folder }, '--config', FILE, '--demo')
    const { page } = await openPage(browser, `${other.adminUrl}/`)
    await page.getByText('Live', { exact: true }).waitFor()
    await other.end('SIGTERM')
    await page.getByText(/Not connected; stats of/).waitFor()
    const port = new URL(other.adminUrl).port
    const again = await serveHeadgateIn({ cwd: folder }, '--config', FILE, '--demo', '--admin-port', port)
    await page.getByText('Live', { exact: true }).waitFor()
    await page.close()
    await again.end('SIGTERM')
  })

  it('no page of the dashboard has anything serious that axe objects to, light or dark', async () => {
    const { page } = await openPage(browser, `${server.adminUrl}/`)
    for (const name of PAGES) {
      await goTo(page, name)
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        expect(await seriousFindings(page), `${name}, ${colorScheme}`).toEqual([])
      }
    }
    await page.close()
  })
})

describe('with much to show, and little room', () => {
  it('the page stays as small with 10,000 callers who are denied as with twenty', async () => {
    const { page, complaints } = await openPage(browser, `${server.adminUrl}/`)
    await page.getByText('Live', { exact: true }).waitFor()
    for (let batch = 0; batch < 10; batch++) {
      // More than the limit ever gives: denied at the first request.
      const checks = Array.from({ length: 1_000 }, (_, index) => ({
        subject: `user:many-${batch}-${index}`,
        policy: 'api',
        cost: 6,
      }))
      const headers = { 'Content-Type': 'application/json' }
      const body = JSON.stringify({ checks })
      const response = await fetch(`${server.adminUrl}/v1/check`, { method: 'POST', headers, body })
      expect(response.status).toBe(200)
      await response.arrayBuffer()
    }
    await page
      .getByRole('link', { name: /^user:many-/ })
      .first()
      .waitFor()
    await page.getByRole('button', { name: /^Show \d+ more$/ }).click()
    expect(await page.getByRole('link', { name: /^user:/ }).count()).toBeLessThanOrEqual(20)
    expect(await page.locator('*').count()).toBeLessThan(1_000)
    const snapshot = await (await fetch(`${server.adminUrl}/v1/stats`)).text()
    expect(snapshot.length).toBeLessThan(20_000)
    await page.getByRole('link', { name: 'Denials' }).click()
    await page.getByRole('row').nth(20).waitFor()
    expect(await page.getByRole('row').count()).toBeLessThanOrEqual(201)
    expect(complaints).toEqual([])
    await page.close()
  })

  it('every page of the dashboard fits a phone: nothing is wider than the screen', async () => {
    const { page } = await openPage(browser, `${server.adminUrl}/`)
    await page.setViewportSize({ width: 320, height: 740 })
    for (const name of PAGES) {
      await goTo(page, name)
      await expect.poll(() => tooWide(page), { message: name }).toEqual([])
    }
    await page.close()
  })
})

describe('on Redis', () => {
  let redis: RedisProcess
  let shared: HeadgateProcess
  beforeAll(async () => {
    redis = await startRedis()
    const args = ['--config', FILE, '--demo', '--redis', redis.url, '--service', 'shop', '--deadline', '1000']
    shared = await serveHeadgateIn({ cwd: folder }, ...args)
  })
  afterAll(async () => {
    await shared?.end('SIGTERM')
    await redis?.stop()
  })

  it('the page says that Redis is away, since when, and what it still knows', async () => {
    const { page, complaints } = await openPage(browser, `${shared.adminUrl}/`)
    const send = async () => (await fetch(shared.gatewayUrl, { headers: { 'x-user': 'ada' } })).arrayBuffer()
    await send()
    await page.getByRole('row', { name: /^redis / }).waitFor()
    redis.kill('SIGSTOP')
    try {
      // Frozen: it takes what is sent, and answers nothing. Nobody asks but the page, at first.
      await page.getByText(/^Live, without Redis since \d\d:\d\d:\d\d$/).waitFor()
      await page.getByText(/Redis has not answered since \d\d:\d\d:\d\d\./).waitFor()
      await page.getByText(/those of this server alone\. .* 1 processes .* as of \d\d:\d\d:\d\d\./).waitFor()
      await page.getByText(/does not answer since/).waitFor()
      await send()
      await page.getByRole('row', { name: /^local / }).waitFor()
      expect(await seriousFindings(page)).toEqual([])
    } finally {
      redis.kill('SIGCONT')
    }
    await page.getByText('Live', { exact: true }).waitFor()
    await page.getByText(/Redis has not answered/).waitFor({ state: 'detached' })
    expect(complaints).toEqual([])
    await page.close()
  })
})

describe('a fleet of two gateways', () => {
  it('the page names whom limits in shadow and candidates would have denied, at either gateway', async () => {
    const redis = await startRedis()
    const file = join(folder, 'shadow.yaml')
    writeFileSync(
      file,
      `policies:
  quiet: { limits: { algorithm: sliding-window-log, limit: 2, window: 1h }, mode: shadow }
  live:
    limits: { algorithm: sliding-window-log, limit: 1000, window: 1h }
    candidate: { algorithm: sliding-window-log, limit: 3, window: 1h }
default: { policy: live }
rules:
  - { match: { path: /quiet }, policy: quiet }
identify: [{ user: { header: x-user, from: everybody } }]
masks: { user: whole }
`,
    )
    const args = ['--config', file, '--demo', '--redis', redis.url]
    const gateways = await Promise.all([0, 1].map(() => serveHeadgateIn({ cwd: folder }, ...args)))
    const [one, other] = gateways as [HeadgateProcess, HeadgateProcess]
    try {
      const { page, complaints } = await openPage(browser, `${one.adminUrl}/`)
      await page.getByText('Live', { exact: true }).waitFor()
      await page.getByRole('link', { name: 'Shadow' }).click()
      const send = async (path: string, user: string) => {
        const response = await fetch(`${other.gatewayUrl}${path}`, { headers: { 'x-user': user } })
        await response.arrayBuffer()
        return response.status
      }
      for (let request = 0; request < 6; request++) {
        expect(await send('/quiet', 'ada')).toBe(200)
        expect(await send('/', 'bob')).toBe(200)
      }
      await page.getByRole('row', { name: /^user:ada quiet\.log-1h 4 / }).waitFor()
      await page.getByRole('row', { name: /^user:bob live\+candidate\.log-1h 3 / }).waitFor()
      expect(await seriousFindings(page)).toEqual([])
      await page.getByRole('link', { name: 'user:ada' }).click()
      await page.getByRole('heading', { name: 'user:ada' }).waitFor()
      expect(complaints).toEqual([])
      await page.close()
    } finally {
      for (const gateway of gateways) await gateway.end('SIGTERM')
      await redis.stop()
    }
  })
})

it('the page shows what the gateway answered itself, by reason', async () => {
  const { page } = await openPage(browser, `${server.adminUrl}/`)
  await rawRequest(server.gatewayUrl, 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n')
  await page.getByRole('row', { name: /^host 4xx [\d.]+ 1$/ }).waitFor()
  await page.close()
})

describe('with tokens', () => {
  it('a dashboard with tokens shows nothing but a question for the token, and the stats to who has one', async () => {
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

  it('a token that may only read is shown no button that it may not use', async () => {
    const secret = 'a-token-of-sixteen-or-more'
    const closed = await serveHeadgateIn(
      { cwd: folder, env: { HEADGATE_ADMIN_TOKEN_OPS: secret } },
      ...['--config', FILE, '--demo', '--admin-token', 'eyes:read:env:HEADGATE_ADMIN_TOKEN_OPS'],
    )
    try {
      for (let request = 0; request < 7; request++) await (await fetch(closed.gatewayUrl)).arrayBuffer()
      const { page } = await openPage(browser, `${closed.adminUrl}/`)
      await page.getByLabel('Token').fill(secret)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('link', { name: 'ip:127.0.…' }).waitFor()
      expect(await page.getByRole('button').allTextContents()).toEqual(['Sign out'])
      await page.getByRole('link', { name: 'ip:127.0.…' }).click()
      await page
        .getByRole('row', { name: /GET \// })
        .first()
        .waitFor()
      expect(await page.getByRole('button').allTextContents()).toEqual(['Sign out'])
      await page.getByRole('link', { name: 'Control' }).click()
      await page.getByText('The whole fleet').waitFor()
      expect(await page.getByRole('button').allTextContents()).toEqual(['Sign out'])
      await page.close()
    } finally {
      await closed.end('SIGTERM')
    }
  })
})
