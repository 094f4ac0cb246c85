import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { toMarkdown } from './markdown.js'
import { judge } from './targets.js'

/** @typedef {import('./results.js').Results} Results */

const RESULTS = new URL('../../results/', import.meta.url)
const DOCS_PAGE = new URL('../../../docs/reference/benchmarks.md', import.meta.url)
const BEGIN = '<!-- bench:embedded:begin (written by `npm run bench`) -->'
const END = '<!-- bench:embedded:end -->'

/** Writes the figures for machines and for people, and into the page of the documentation that quotes them. @param {Results} results */
export async function writeResults(results) {
  await mkdir(RESULTS, { recursive: true })
  const json = { ...results, targets: judge(results) }
  await writeFile(new URL('embedded.json', RESULTS), `${JSON.stringify(json, rounded, 2)}\n`)
  await writeFile(new URL('embedded.md', RESULTS), `# Embedded store\n\n${toMarkdown(results, '##')}\n`)
  const page = await readFile(DOCS_PAGE, 'utf8')
  await writeFile(DOCS_PAGE, replaceBetween(page, `\n${toMarkdown(results, '###')}\n`))
}

/** Four digits say all that was measured. @param {string} _key @param {unknown} value */
function rounded(_key, value) {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value
}

/** @param {string} page @param {string} text */
function replaceBetween(page, text) {
  const begin = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (begin < 0 || end < begin)
    throw new Error(`docs/reference/benchmarks.md has lost its markers: ${BEGIN}, ${END}`)
  return `${page.slice(0, begin + BEGIN.length)}\n${text}\n${page.slice(end)}`
}
