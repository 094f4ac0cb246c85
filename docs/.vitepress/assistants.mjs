// What coding assistants read, from the same pages as everybody else: llms.txt lists them, llms-full.txt contains them.

import { readFileSync } from 'node:fs'
import { SIDEBAR } from './sidebar.mjs'

const DOCS = new URL('..', import.meta.url)

/** Decisions and measurements are about the library, not about using it. */
const isForUsers = ({ text }) => text !== 'Decisions' && text !== 'Measured'

const read = ({ link }) => readFileSync(new URL(`.${link}.md`, DOCS), 'utf8')

/** The first sentence of a page, without links. */
function aboutOf(text) {
  const paragraphs = text.replace(/^```[\s\S]*?^```$/gm, '').split(/\n{2,}/)
  const first =
    paragraphs.map(paragraph => paragraph.trim()).find(paragraph => /^[\w`*[]/.test(paragraph)) ?? ''
  const words = first.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/\s+/g, ' ')
  return words.split(/(?<=[.?!])\s/)[0].replace(/:$/, '.')
}

/**
 * Returns both files. `addressOf` turns the link of a page into its address.
 *
 * @param {(link: string) => string} addressOf
 */
export function assistantFiles(addressOf) {
  const groups = SIDEBAR.filter(isForUsers)
  const list = groups.map(({ text, items }) => {
    const lines = items.map(item => `- [${item.text}](${addressOf(item.link)}): ${aboutOf(read(item))}`)
    return `## ${text}\n\n${lines.join('\n')}\n`
  })
  const pages = groups
    .filter(({ text }) => text !== 'API')
    .flatMap(({ items }) => items.map(item => `<!-- ${addressOf(item.link)} -->\n\n${read(item)}`))
  const about =
    '# Headgate\n\n> Distributed rate limiting for TypeScript: exact limits across processes, on Redis or in memory.\n'
  return { 'llms.txt': `${about}\n${list.join('\n')}`, 'llms-full.txt': `${about}\n${pages.join('\n\n')}` }
}
