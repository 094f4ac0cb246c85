/** Debian's Chromium, driven by playwright-core. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, chromium, type Page } from 'playwright-core'
import { systemProgram } from '../../headgate/test/support/system-program.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
// It runs as root in containers, and must not look for anything outside this machine.
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

export async function startBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: await systemProgram('chromium'), args: ARGS })
}

/** A page and its failures. */
export interface WatchedPage {
  readonly page: Page
  /** Uncaught errors, violations of the content security policy, dialogs, and requests to other places. */
  readonly complaints: string[]
}

export async function openPage(browser: Browser, url: string): Promise<WatchedPage> {
  const page = await browser.newPage()
  const complaints: string[] = []
  page.on('pageerror', error => complaints.push(`error: ${error.message}`))
  page.on('dialog', dialog => {
    complaints.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('console', message => {
    if (/content security policy/i.test(message.text())) complaints.push(message.text())
  })
  page.on('request', request => {
    if (!request.url().startsWith(url)) complaints.push(`request to ${request.url()}`)
  })
  await page.goto(url)
  return { page, complaints }
}

/** The findings of axe that keep somebody from using the page. Its script was evaluated by the browser's own tools, which no policy forbids. */
export async function seriousFindings(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE)
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

/** Finds elements that reach beyond the right end of the screen, except inside a panel, which scrolls by itself. */
export async function tooWide(page: Page): Promise<readonly string[]> {
  return page.evaluate(`[...document.querySelectorAll('body *')]
    .filter(element => element.getBoundingClientRect().right > innerWidth + 1)
    .filter(element => element.closest('.panel') === null || element.matches('.panel'))
    .concat([...document.querySelectorAll('.panel')].filter(panel => panel.scrollWidth > panel.clientWidth + 1))
    .map(element => element.outerHTML.slice(0, 100))`)
}
