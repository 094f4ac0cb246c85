// Reads the built site and finds links to pages, headings and files that are not there.

import { readdirSync, readFileSync } from 'node:fs'
import { join, posix, relative } from 'node:path'

/**
 * Returns a line for every link of the site that leads nowhere, with the page it is on.
 *
 * @param {string} site the folder that was built
 * @returns {string[]}
 */
export function deadLinks(site) {
  const entries = readdirSync(site, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  const files = new Set(entries.map(({ parentPath, name }) => relative(site, join(parentPath, name))))
  const pages = [...files].filter(name => name.endsWith('.html'))
  const html = new Map(pages.map(name => [name, readFileSync(join(site, name), 'utf8')]))
  const ids = new Map(
    pages.map(name => [name, new Set([...html.get(name).matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id))]),
  )
  const fileOf = path => [path, `${path}.html`, posix.join(path, 'index.html')].find(name => files.has(name))
  const dead = []
  for (const [page, text] of html) {
    for (const [, address] of text.matchAll(/<(?:a|img|link|script)\b[^>]*? (?:href|src)="([^"]*)"/g)) {
      if (/^[a-z]+:/.test(address)) continue
      const [path, id] = address.split('#')
      const inside = path.startsWith('/') ? path.slice(1) : posix.join(posix.dirname(page), path)
      const target =
        path === '' ? page : fileOf(inside === '' ? 'index.html' : inside.replace(/\/$/, '/index.html'))
      if (target === undefined) dead.push(`${page}: ${address} leads to nothing`)
      // TypeDoc numbers equal headings differently; what it links to is on that page all the same.
      else if (id && !page.startsWith('reference/api/') && !ids.get(target)?.has(decodeURIComponent(id)))
        dead.push(`${page}: ${address} leads to no heading`)
    }
  }
  return [...new Set(dead)]
}
