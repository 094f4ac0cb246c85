/**
 * Writes a table that is readable as Markdown and on a screen: pads the columns and right-aligns all but the first.
 *
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 */
export function formatTable(head, rows) {
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

/** @param {number} value Decisions a second. */
export function formatRate(value) {
  if (value >= 1e6) return `${(value / 1e6).toFixed(2)} M`
  return `${(value / 1e3).toFixed(value < 2e4 ? 1 : 0)} k`
}

/** @param {number} value */
export function formatRatio(value) {
  return `${value.toFixed(2)} ×`
}

/** @param {number} value */
export function formatShare(value) {
  return `${(value * 100).toFixed(1)} %`
}
