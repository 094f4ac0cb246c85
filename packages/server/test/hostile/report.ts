/** The outcome of an attack. */
export interface Row {
  readonly group: string
  readonly attack: string
  readonly does: string
  readonly expected: string
  readonly outcome: string
  readonly held: boolean
}

/** Formats the rows as Markdown: a heading and a table for each group. */
export function toMarkdown(rows: readonly Row[]): string {
  const titles = [...new Set(rows.map(({ group }) => group))]
  return titles
    .map(title => `### ${title}\n\n${toTable(rows.filter(({ group }) => group === title))}`)
    .join('\n\n')
}

function toTable(rows: readonly Row[]): string {
  const head = ['attack', 'expected', 'outcome', 'held']
  const cells = rows.map(({ attack, does, expected, outcome, held }) => [
    `**${attack}**: ${does}`,
    expected,
    outcome,
    held ? 'yes' : '**no**',
  ])
  const line = (row: readonly string[]) => `| ${row.map(escapeCell).join(' | ')} |`
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...cells.map(line)].join('\n')
}

/** Escapes an outcome, which may quote what an attacker sent. */
function escapeCell(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not reach the page
  return text.replace(/[\x00-\x1f\x7f]/g, ' ').replaceAll('|', '\\|')
}
