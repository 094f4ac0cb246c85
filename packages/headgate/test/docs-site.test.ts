/** Builds the site of the documentation as `npm run docs` does, and reads it as its readers do. */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import MiniSearch from 'minisearch'
import { afterAll, beforeAll, expect, it } from 'vitest'
// @ts-expect-error
import { deadLinks } from '../../../docs/.vitepress/dead-links.mjs'
// @ts-expect-error: plain JavaScript, which VitePress loads
import { SEARCH_OPTIONS } from '../../../docs/.vitepress/search.mjs'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'headgate-site-'))
const site = join(folder, 'site')

beforeAll(async () => {
  await promisify(execFile)(process.execPath, ['docs/build.mjs', '--out', site], { cwd: ROOT })
}, 180_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const files = (): string[] => readdirSync(site, { recursive: true, encoding: 'utf8' })

it('every page of the documentation is on the site, and no link of the site leads nowhere', () => {
  const pages = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter(path => path.endsWith('.md') && !path.includes('node_modules'))
    .map(path => path.replace(/README\.md$/, 'index.md').replace(/\.md$/, '.html'))
  expect(pages.length).toBeGreaterThan(50)
  expect(files()).toEqual(expect.arrayContaining(pages))
  expect(deadLinks(site)).toEqual([])
})

it('a link to a page, a heading or a picture that is not there is found', () => {
  const wrong = join(folder, 'wrong')
  mkdirSync(wrong)
  writeFileSync(
    join(wrong, 'a.html'),
    '<h1 id="x"></h1><a href="./b">b</a><a href="#x"></a><img src="/c.png">',
  )
  writeFileSync(
    join(wrong, 'd.html'),
    '<a href="/a#x"></a><a href="./a#y"></a><a href="https://elsewhere/"></a>',
  )
  expect(deadLinks(wrong).sort()).toEqual([
    'a.html: ./b leads to nothing',
    'a.html: /c.png leads to nothing',
    'd.html: ./a#y leads to no heading',
  ])
})

it('a page loads nothing from elsewhere', () => {
  for (const file of files().filter(name => name.endsWith('.html'))) {
    const html = readFileSync(join(site, file), 'utf8')
    expect([...html.matchAll(/<(?:script|img|link)\b[^>]*? (?:src|href)="[a-z]+:\/\/[^"]*"/g)], file).toEqual(
      [],
    )
  }
})

it.each(['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'examples/README.md'])(
  'every link of %s leads to a file',
  page => {
    const text = readFileSync(join(ROOT, page), 'utf8').replace(/^```[\s\S]*?^```/gm, '')
    const links = [...text.matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)].map(([, link = '']) => link)
    expect(links.filter(link => !existsSync(join(ROOT, dirname(page), link)))).toEqual([])
  },
)

/** What people type, and the page that must be among the first five hits. */
const SEARCHES: [string, string][] = [
  ['allowlist', 'guide/recipes'],
  ['api key', 'guide/who-is-asking'],
  ['ban user', 'guide/recipes'],
  ['behind a proxy', 'guide/client-address'],
  ['brute force', 'guide/recipes'],
  ['bun', 'guide/frameworks/fetch'],
  ['circuit breaker', 'guide/failure'],
  ['cloudflare workers', 'guide/frameworks/fetch'],
  ['commonjs', 'guide/commonjs-and-jest'],
  ['createLimiter', 'reference/api/headgate'],
  ['cors', 'guide/questions'],
  ['credential stuffing', 'guide/logins'],
  ['custom message', 'guide/recipes'],
  ['ERR_HEADGATE_CLOSED', 'reference/errors'],
  ['express', 'guide/frameworks/express'],
  ['express-rate-limit', 'guide/coming-from/express-rate-limit'],
  ['fake clock', 'guide/recipes'],
  ['fastify', 'guide/frameworks/fastify'],
  ['graceful shutdown', 'guide/recipes'],
  ['graphql', 'guide/batches'],
  ['health check', 'guide/recipes'],
  ['jest', 'guide/commonjs-and-jest'],
  ['kubernetes', 'guide/recipes'],
  ['lambda', 'guide/recipes'],
  ['load balancer', 'guide/recipes'],
  ['nestjs', 'guide/frameworks/nest'],
  ['nextjs middleware', 'guide/frameworks/next'],
  ['nginx', 'guide/forward-auth'],
  ['openai tokens', 'guide/llm-proxy'],
  ['password spraying', 'guide/logins'],
  ['prometheus', 'reference/metrics'],
  ['redis cluster', 'guide/redis'],
  ['redis down', 'guide/failure'],
  ['redisStore', 'reference/api/headgate.redis'],
  ['retry-after', 'reference/headers'],
  ['shadow mode', 'guide/roll-out-safely'],
  ['sliding window', 'guide/algorithms'],
  ['throttle outbound requests', 'guide/call-an-api'],
  ['token bucket', 'guide/algorithms'],
  ['troubleshooting', 'guide/questions'],
  ['trust proxy', 'guide/client-address'],
  ['x-forwarded-for', 'guide/client-address'],
]

it.each(SEARCHES)('a search for "%s" finds %s', async (words, page) => {
  const index = await searchIndex()
  const found = index.search(words, SEARCH_OPTIONS).slice(0, 5)
  expect(found.map(({ id }) => String(id).split('#')[0])).toContain(`/${page}`)
})

async function searchIndex(): Promise<MiniSearch> {
  const chunk = files().find(name => name.includes('@localSearchIndexroot')) ?? ''
  const { default: json } = (await import(join(site, chunk))) as { default: string }
  return MiniSearch.loadJSON(json, { fields: ['title', 'titles', 'text'], storeFields: ['title', 'titles'] })
}
