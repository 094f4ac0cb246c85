// Renders Markdown as HTML: headings have ids, links lead to pages of the site or to the repository, and every broken link
// is reported.

import { existsSync } from 'node:fs'
import { join, posix } from 'node:path'
import MarkdownIt from 'markdown-it'
import { root } from '../prepare.mjs'
import { addressOf } from './read-pages.mjs'

const REPOSITORY = 'https://github.com/headgate/headgate/blob/main/'

/** Returns the id that a heading has on GitHub. */
export function slugOf(text) {
  return text
    .toLowerCase()
    .replace(/<[^>]*>/g, '')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
}

/** All ids that a page can be linked to by: its headings, and those that stand in it. */
function idsOf(text) {
  const outsideCode = text.replace(/^```[\s\S]*?^```/gm, '')
  const ids = new Set([...outsideCode.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => id))
  const seen = new Map()
  for (const [, heading] of outsideCode.matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = slugOf(heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1'))
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    ids.add(count === 0 ? slug : `${slug}-${count}`)
  }
  return ids
}

/** Turns pages into HTML. `problems` collects the links that lead nowhere. */
export function createRenderer(pages) {
  const ids = new Map([...pages].map(([path, { text }]) => [path, idsOf(text)]))
  const problems = []

  /** Resolves a link of a page to its address on the site. */
  function resolve(link, page) {
    if (/^[a-z]+:/.test(link)) return link
    const [path, id] = link.split('#')
    const target = path === '' ? page.path : posix.join(posix.dirname(page.path), path).replace(/\/$/, '')
    const known = pages.get(target) ?? pages.get(`${target}/README.md`)
    if (known === undefined) {
      if (!existsSync(join(root, target))) problems.push(`${page.path}: ${link} leads to nothing`)
      return target.startsWith('docs/assets/')
        ? posix.relative(posix.dirname(page.address), target.replace('docs/', ''))
        : REPOSITORY + target + (id ? `#${id}` : '')
    }
    if (id && !ids.get(known.path).has(id)) problems.push(`${page.path}: ${link} leads to no heading`)
    if (path === '') return link
    const address =
      posix.relative(posix.dirname(page.address), addressOf(known.path)) || posix.basename(known.address)
    return id ? `${address}#${id}` : address
  }

  const markdown = new MarkdownIt({ html: true })
  const { rules } = markdown.renderer
  const rewrite = (name, attribute) => {
    rules[name] = (tokens, index, options, page, self) => {
      tokens[index].attrSet(attribute, resolve(tokens[index].attrGet(attribute), page))
      return self.renderToken(tokens, index, options)
    }
  }
  rewrite('link_open', 'href')
  rules.image = (tokens, index, options, page, self) => {
    tokens[index].attrSet('src', resolve(tokens[index].attrGet('src'), page))
    tokens[index].attrSet('alt', tokens[index].content)
    return self.renderToken(tokens, index, options)
  }
  rules.heading_open = (tokens, index, options, page, self) => {
    const slug = slugOf(plain(tokens[index + 1]))
    const count = page.slugs.get(slug) ?? 0
    page.slugs.set(slug, count + 1)
    tokens[index].attrSet('id', count === 0 ? slug : `${slug}-${count}`)
    return self.renderToken(tokens, index, options)
  }
  // A wide table scrolls on its own, without the page.
  rules.table_open = () => '<div class="wide" tabindex="0" role="region" aria-label="table"><table>\n'
  rules.table_close = () => '</table></div>\n'

  return {
    problems,
    render: page => markdown.render(page.text, { ...page, slugs: new Map() }),
  }
}

function plain({ children }) {
  return (children ?? []).map(({ content }) => content).join('')
}
