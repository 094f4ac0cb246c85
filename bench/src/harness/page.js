/** Writes the figures: tables, the sections of docs/reference/benchmarks.md and of the README, and bench/results. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { redisProgram } from './redis-server.js'

const ROOT = new URL('../../../', import.meta.url)
const PAGES = ['docs/reference/benchmarks.md', 'README.md']

/** A table: its column heads, the first of which names the rows. @typedef {{ head: readonly string[], rows: readonly (readonly string[])[] }} Table */

/**
 * Formats a table so that it is readable as Markdown and on a screen.
 *
 * @param {Table} table
 */
export function formatTable({ head, rows }) {
  const widths = head.map((_, column) =>
    Math.max(...[head, ...rows].map(row => (row[column] ?? '').length), 3),
  )
  /** @param {readonly string[]} row */
  const line = row => {
    const cells = widths.map((width, column) => {
      const cell = row[column] ?? ''
      return column === 0 ? cell.padEnd(width) : cell.padStart(width)
    })
    return `| ${cells.join(' | ')} |`
  }
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [line(head), line(rule), ...rows.map(line)].join('\n')
}

/**
 * Replaces the text between the markers of a section in every page that has them, and says whether one has.
 *
 * @param {string} name
 * @param {string} text
 */
export function writeSection(name, text) {
  let isFound = false
  for (const path of PAGES) {
    const file = new URL(path, ROOT)
    const page = replaceSection(readFileSync(file, 'utf8'), name, text)
    if (page === undefined) continue
    writeFileSync(file, page)
    isFound = true
  }
  return isFound
}

/** Returns the page with the section's text, `undefined` where the page has no such section. @param {string} page @param {string} name @param {string} text */
export function replaceSection(page, name, text) {
  const [begin, end] = markersOf(name)
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  return from < 0 || to < from
    ? undefined
    : `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`
}

/** @param {string} name @returns {[string, string]} */
function markersOf(name) {
  return [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`]
}

/** Keeps a bench's figures for the next run to compare with. @param {string} name @param {object} figures */
export function writeResults(name, figures) {
  const file = resultsFile(name)
  mkdirSync(new URL('.', file), { recursive: true })
  writeFileSync(file, `${JSON.stringify(figures, null, 2)}\n`)
}

/** Returns a bench's committed figures. @param {string} name @returns {any} */
export function readResults(name) {
  return JSON.parse(readFileSync(resultsFile(name), 'utf8'))
}

/** @param {string} name */
function resultsFile(name) {
  return new URL(`bench/results/${name}.json`, ROOT)
}

/** Says on what the figures were taken. @param {import('./quiet.js').Machine} [machine] Where they are times. */
export async function settingOf(machine) {
  const redis = /v=(\S+)/.exec(execFileSync(await redisProgram(), ['--version'], { encoding: 'utf8' }))?.[1]
  const setting = `Node ${process.versions.node}, Redis ${redis}, ${availableParallelism()} cores`
  return machine === undefined ? `${setting}.` : `${setting}; ${machine.describe()}.`
}

/** @param {number} value */
export function thousands(value) {
  return Math.round(value).toLocaleString('en')
}
