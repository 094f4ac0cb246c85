/** Builds the documentation site, and reads it as a reader without a network would. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import MiniSearch from 'minisearch'
import { afterAll, beforeAll, expect, it } from 'vitest'
// @ts-expect-error: plain JavaScript, which `npm run docs` runs without a build
import { buildSite } from '../../../scripts/docs/build-site.mjs'
// @ts-expect-error
import { createRenderer } from '../../../scripts/docs/render.mjs'

const site = mkdtempSync(join(tmpdir(), 'headgate-site-'))
beforeAll(() => buildSite(site))
afterAll(() => rmSync(site, { recursive: true, force: true }))

const files = (): string[] => readdirSync(site, { recursive: true, encoding: 'utf8' })

it('every page of the documentation is on the site, and no link leads nowhere', () => {
  expect(files()).toEqual(
    expect.arrayContaining(['index.html', 'guide/quickstart.html', 'reference/promises.html']),
  )
})

it('a page loads nothing from elsewhere, and everything it loads is there', () => {
  for (const file of files().filter(name => name.endsWith('.html'))) {
    const html = readFileSync(join(site, file), 'utf8')
    const loaded = [...html.matchAll(/<(?:script|img|link)[^>]* (?:src|href)="(?!data:)([^"]+)"/g)].map(
      ([, to = '']) => to,
    )
    const missing = loaded.filter(to => !files().includes(join(file, '..', to)))
    expect(missing, file).toEqual([])
  }
})

it('search finds the section that speaks of what was typed', () => {
  const index = MiniSearch.loadJSON<{ address: string }>(readFileSync(join(site, 'search.json'), 'utf8'), {
    fields: ['title', 'text'],
    storeFields: ['title', 'page', 'address'],
  })
  const found = (words: string) =>
    index.search(words, { prefix: true, boost: { title: 3 } }).map(hit => hit.address)
  expect(found('express-rate-limit').slice(0, 5).join()).toContain('coming-from/express-rate-limit.html')
  expect(found('ERR_HEADGATE_CLOSED').join()).toContain('reference/errors.html')
})

it('a link to a page, a heading or a file that is not there is reported by page', () => {
  const page = {
    path: 'docs/guide/x.md',
    address: 'guide/x.html',
    text: '# X\n[a](y.md) [b](#z) [c](../../nothing.ts)',
  }
  const { render, problems } = createRenderer(new Map([[page.path, page]]))
  render(page)
  expect(problems).toEqual([
    'docs/guide/x.md: y.md leads to nothing',
    'docs/guide/x.md: #z leads to no heading',
    'docs/guide/x.md: ../../nothing.ts leads to nothing',
  ])
})
