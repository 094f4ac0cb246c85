// Reads docs/ and the README: every page with its path, title, text and place in the navigation.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../prepare.mjs'
import { NAVIGATION } from './navigation.mjs'

const HOME = 'README.md'

/**
 * Returns every page by its path in the repository, and the groups they are listed in.
 * Throws when a page is in no group, or a group names one that is not there.
 */
export function readPages() {
  const paths = readdirSync(join(root, 'docs'), { recursive: true })
    .filter(path => path.endsWith('.md'))
    .sort()
  const groups = NAVIGATION.map(({ title, pages, folder }) => ({
    title,
    paths: (pages ?? paths.filter(path => path.startsWith(folder))).map(path => `docs/${path}`),
  }))
  const listed = new Set(groups.flatMap(group => group.paths))
  const all = paths.map(path => `docs/${path}`)
  const problems = [
    ...all
      .filter(path => !listed.has(path))
      .map(path => `${path} is in no group of scripts/docs/navigation.mjs`),
    ...[...listed].filter(path => !all.includes(path)).map(path => `${path} is listed and does not exist`),
  ]
  if (problems.length > 0) throw new Error(problems.join('\n'))
  const pages = new Map([HOME, ...all].map(path => [path, readPage(path)]))
  return { pages, groups }
}

function readPage(path) {
  const text = readFileSync(join(root, path), 'utf8')
  return { path, text, title: /^# (.+)$/m.exec(text)?.[1] ?? path, address: addressOf(path) }
}

/** Returns the address of a page on the site. */
export function addressOf(path) {
  if (path === HOME) return 'index.html'
  return path
    .replace(/^docs\//, '')
    .replace(/README\.md$/, 'index.md')
    .replace(/\.md$/, '.html')
}
