/** Usage as CSV, for spreadsheets and billing. */
import { printable } from 'headgate/internal'
import type { UsageRow } from '../redis/usage-pages.js'

const COLUMNS = [
  'id',
  'subject',
  'policy',
  'quota',
  'scope',
  'startsAt',
  'endsAt',
  'used',
  'paidWithCredits',
  'overage',
] as const

export const CSV_HEAD = COLUMNS.join(',')

/** A line of CSV. A spreadsheet takes no cell of it for a formula, and a terminal none for a command. */
export function csvLine(row: UsageRow): string {
  return COLUMNS.map(name => cell(row[name])).join(',')
}

function cell(value: string | number): string {
  if (typeof value === 'number') return String(value)
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value
  return `"${printable(text).replaceAll('"', '""')}"`
}
