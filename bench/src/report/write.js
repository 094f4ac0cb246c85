import { mkdir, readFile, writeFile } from 'node:fs/promises'

const RESULTS = new URL('../../results/', import.meta.url)
const CHARTS = new URL('../../../docs/assets/', import.meta.url)
const DOCS_PAGE = new URL('../../../docs/reference/benchmarks.md', import.meta.url)

/**
 * @typedef {object} Report
 * @property {string} title
 * @property {object} json
 * @property {(heading: string) => string} markdown Writes Markdown with headings of that level.
 * @property {Readonly<Record<string, string>>} [charts] By file name.
 */

/**
 * Writes the figures as JSON and as Markdown, and into the page of the documentation that quotes them.
 *
 * @param {string} name The part of the bench, which names its files and its place in the page.
 * @param {Report} report
 */
export async function writeResults(name, { title, json, markdown, charts = {} }) {
  await mkdir(RESULTS, { recursive: true })
  await writeFile(new URL(`${name}.json`, RESULTS), `${JSON.stringify(json, rounded, 2)}\n`)
  await writeFile(new URL(`${name}.md`, RESULTS), `# ${title}\n\n${markdown('##')}\n`)
  await mkdir(CHARTS, { recursive: true })
  for (const [file, chart] of Object.entries(charts)) await writeFile(new URL(file, CHARTS), chart)
  const page = await readFile(DOCS_PAGE, 'utf8')
  await writeFile(DOCS_PAGE, replaceBetween(page, name, `\n${markdown('###')}\n`))
}

/** Rounds to four digits, the precision of the measurements. @param {string} _key @param {unknown} value */
function rounded(_key, value) {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value
}

/** @param {string} page @param {string} name @param {string} text */
function replaceBetween(page, name, text) {
  const begin = `<!-- bench:${name}:begin (written by \`npm run bench\`) -->`
  const end = `<!-- bench:${name}:end -->`
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from < 0 || to < from)
    throw new Error(`docs/reference/benchmarks.md has lost its markers: ${begin}, ${end}`)
  return `${page.slice(0, from + begin.length)}\n${text}\n${page.slice(to)}`
}
