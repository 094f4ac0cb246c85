import type { ReadLine } from './logged-request.js'
import { requestOfFields } from './named-fields.js'

/** Parses CSV with a header line. A quoted value may contain commas and doubled quotes, and ends on its line. */
export function csvLog(): ReadLine {
  let columns: ReadonlyMap<string, number> | null = null
  return line => {
    const values = valuesOf(line)
    if (columns === null) {
      columns = new Map(values.map((name, index) => [name.trim(), index]))
      return null
    }
    const known = columns
    return requestOfFields(name => values[known.get(name) ?? -1])
  }
}

function valuesOf(line: string): string[] {
  if (!line.includes('"')) return line.split(',')
  const values: string[] = []
  let at = 0
  while (at <= line.length) {
    const { value, end } = line[at] === '"' ? quotedValue(line, at + 1) : bareValue(line, at)
    values.push(value)
    at = end + 1
  }
  return values
}

function bareValue(line: string, from: number): { value: string; end: number } {
  const comma = line.indexOf(',', from)
  const end = comma < 0 ? line.length : comma
  return { value: line.slice(from, end), end }
}

function quotedValue(line: string, from: number): { value: string; end: number } {
  let value = ''
  let at = from
  while (true) {
    const quote = line.indexOf('"', at)
    if (quote < 0) return { value: value + line.slice(at), end: line.length }
    value += line.slice(at, quote)
    if (line[quote + 1] !== '"') return { value, end: bareValue(line, quote + 1).end }
    value += '"'
    at = quote + 2
  }
}
