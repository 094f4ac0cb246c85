// Builds the site of the documentation.

import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import MiniSearch from 'minisearch'
import { root } from '../prepare.mjs'
import { layOut } from './layout.mjs'
import { readPages } from './read-pages.mjs'
import { createRenderer, slugOf } from './render.mjs'

const HERE = dirname(fileURLToPath(import.meta.url))

/**
 * Writes the site into a folder, which is emptied first. Throws with every link that leads nowhere.
 *
 * @param {string} target
 * @returns {{ pages: number }}
 */
export function buildSite(target) {
  const site = readPages()
  const { render, problems } = createRenderer(site.pages)
  rmSync(target, { recursive: true, force: true })
  for (const page of site.pages.values()) {
    const file = join(target, page.address)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, layOut(page, render(page), site))
  }
  if (problems.length > 0) throw new Error(problems.join('\n'))
  cpSync(join(root, 'docs', 'assets'), join(target, 'assets'), { recursive: true })
  for (const name of ['site.js', 'site.css']) cpSync(join(HERE, name), join(target, name))
  const library = createRequire(import.meta.url).resolve('minisearch')
  cpSync(join(dirname(library), '..', 'es', 'index.js'), join(target, 'minisearch.js'))
  writeFileSync(join(target, 'search.json'), JSON.stringify(indexOf(site.pages)))
  return { pages: site.pages.size }
}

/** Builds the search index: one entry for each section of each page. */
function indexOf(pages) {
  const index = new MiniSearch({ fields: ['title', 'text'], storeFields: ['title', 'page', 'address'] })
  let id = 0
  for (const { text, title: page, address } of pages.values()) {
    for (const section of text.split(/^(?=#{1,3} )/m)) {
      const title = /^#+ (.+)$/m.exec(section)?.[1] ?? page
      const at = title === page ? address : `${address}#${slugOf(title)}`
      index.add({
        id: id++,
        title: title.replace(/[`*]/g, ''),
        page: page.replace(/[`*]/g, ''),
        address: at,
        text: section,
      })
    }
  }
  return index
}
