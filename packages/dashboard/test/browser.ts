/** Debian's Chromium, driven by playwright-core. */
import { type Browser, chromium, type Page } from 'playwright-core'
import { systemProgram } from '../../headgate/test/support/system-program.ts'

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

/** A page, and what went wrong in it. */
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
