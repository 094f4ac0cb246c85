// The site of the documentation: docs/ as it stands, with search. A page that is in no menu and a link that leads nowhere
// fail the build.

import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'
import { assistantFiles } from './assistants.mjs'
import { deadLinks } from './dead-links.mjs'
import { SEARCH_OPTIONS } from './search.mjs'
import { SIDEBAR } from './sidebar.mjs'

const DOCS = fileURLToPath(new URL('..', import.meta.url))
const ROOT = dirname(DOCS.replace(/\/$/, ''))
const SITE = 'https://headgate.github.io/headgate'
const REPOSITORY = 'https://github.com/headgate/headgate'

/** The id that a heading has on GitHub, so that a link works in both places. */
function slugify(heading) {
  return heading
    .toLowerCase()
    .replace(/<[^>]*>/g, '')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
}

/** Links to files of the repository that are no pages lead to the repository. */
function linkToRepository(markdown) {
  const render = markdown.renderer.rules.link_open
  markdown.renderer.rules.link_open = (tokens, index, options, env, self) => {
    const href = tokens[index].attrGet('href') ?? ''
    if (/^\.{1,2}\//.test(href) || /^[\w.-]+\.md/.test(href)) {
      const [path, hash] = href.split('#')
      const target = posix.join(posix.dirname(posix.join('docs', env.relativePath)), path).replace(/\/$/, '')
      if (!target.startsWith('docs/') || /^docs\/(?!.*\.md$)(?!assets\/)/.test(target)) {
        if (!existsSync(join(ROOT, target))) throw new Error(`${env.relativePath}: ${href} leads to nothing`)
        tokens[index].attrSet('href', `${REPOSITORY}/blob/main/${target}${hash ? `#${hash}` : ''}`)
      }
    }
    return render(tokens, index, options, env, self)
  }
}

/** Throws when a page is in no menu. VitePress itself reports an entry without a page as a dead link. */
function everyPageIsListed() {
  const listed = new Set()
  const collect = items => {
    for (const { link, items: below = [] } of items) {
      if (link) listed.add(link)
      collect(below)
    }
  }
  collect(SIDEBAR)
  const missing = readdirSync(DOCS, { recursive: true })
    .filter(path => path.endsWith('.md') && !/^(index\.md|\.vitepress|node_modules)/.test(path))
    .map(path => `/${path.replace(/README\.md$/, '').replace(/\.md$/, '')}`)
    .filter(link => !listed.has(link))
  if (missing.length > 0) throw new Error(`in no menu of docs/.vitepress/sidebar.mjs: ${missing.join(', ')}`)
}

export default defineConfig({
  title: 'Headgate',
  description: 'Distributed rate limiting for TypeScript.',
  lang: 'en',
  outDir: '../site',
  cacheDir: '../node_modules/.cache/vitepress',
  cleanUrls: true,
  lastUpdated: false,
  metaChunk: true,
  rewrites: { 'adr/README.md': 'adr/index.md' },
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    anchor: { slugify },
    toc: { slugify },
    headers: { slugify },
    config: linkToRepository,
  },
  themeConfig: {
    nav: [
      { text: 'Quickstart', link: '/guide/quickstart' },
      { text: 'Frameworks', link: '/guide/frameworks' },
      { text: 'Recipes', link: '/guide/recipes' },
      { text: 'API', link: '/reference/api/headgate' },
    ],
    sidebar: SIDEBAR,
    outline: [2, 3],
    search: { provider: 'local', options: { miniSearch: { searchOptions: SEARCH_OPTIONS } } },
    socialLinks: [{ icon: 'github', link: REPOSITORY }],
    editLink: { pattern: `${REPOSITORY}/edit/main/docs/:path`, text: 'Edit this page' },
  },
  async buildEnd({ outDir }) {
    everyPageIsListed()
    for (const [name, text] of Object.entries(assistantFiles(link => `${SITE}${link}`)))
      writeFileSync(join(outDir, name), text)
    const dead = deadLinks(outDir)
    if (dead.length > 0) throw new Error(dead.join('\n'))
  },
})
