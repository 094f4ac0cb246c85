/**
 * Draws horizontal bars in groups, as an SVG for light and dark pages. The same figures give the same bytes.
 *
 * @typedef {{ label: string, value: number, text: string, ours: boolean }} Bar
 * @typedef {{ title: string, bars: readonly Bar[] }} Group Bars are drawn relative to the longest of their group.
 */

const WIDTH = 760
const LABEL_WIDTH = 300
const VALUE_WIDTH = 90
const BAR = 16
const GAP = 6
const TITLE = 26
const BETWEEN_GROUPS = 14
const TOP = 40

const STYLE = `
  text { font: 13px system-ui, -apple-system, 'Segoe UI', sans-serif; fill: #1f2328 }
  .title { font-size: 15px; font-weight: 600 }
  .group { font-weight: 600 }
  .value { font-variant-numeric: tabular-nums }
  .ours { fill: #0a7d5a }
  .other { fill: #9aa4af }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .ours { fill: #2fbf8f }
    .other { fill: #59636e }
  }`

/** @param {string} title @param {readonly Group[]} groups */
export function barChart(title, groups) {
  const lines = []
  let y = TOP
  for (const group of groups) {
    lines.push(text('group', 0, y + 14, group.title))
    y += TITLE
    const longest = Math.max(...group.bars.map(bar => bar.value), Number.MIN_VALUE)
    for (const bar of group.bars) {
      const length = Math.max(1, Math.round((bar.value / longest) * (WIDTH - LABEL_WIDTH - VALUE_WIDTH)))
      lines.push(
        text('label', 0, y + 13, bar.label),
        `<rect class="${bar.ours ? 'ours' : 'other'}" x="${LABEL_WIDTH}" y="${y}" width="${length}" height="${BAR}" rx="2"/>`,
        text('value', LABEL_WIDTH + length + 8, y + 13, bar.text),
      )
      y += BAR + GAP
    }
    y += BETWEEN_GROUPS
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${y}" viewBox="0 0 ${WIDTH} ${y}" role="img">`,
    `<title>${escapeText(title)}</title>`,
    `<style>${STYLE}\n</style>`,
    text('title', 0, 18, title),
    ...lines,
    '</svg>\n',
  ].join('\n')
}

/** @param {string} kind @param {number} x @param {number} y @param {string} content */
function text(kind, x, y, content) {
  return `<text class="${kind}" x="${x}" y="${y}">${escapeText(content)}</text>`
}

/** @param {string} content */
function escapeText(content) {
  return content
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
