/**
 * Draws lines over time, as an SVG for light and dark pages. The same figures give the same bytes.
 *
 * @typedef {{ label: string, values: readonly number[] }} Line One value a second; NaN leaves a gap.
 * @typedef {{ from: number, to: number, label: string }} Band A shaded range of seconds.
 */

const WIDTH = 900
const HEIGHT = 220
const LEFT = 56
const BOTTOM = 24
const TOP = 12
/** Colours that colour-blind readers can tell apart, too. */
const COLOURS = ['#0a7d5a', '#d97706', '#b91c1c', '#6d28d9', '#0369a1']

/**
 * @param {string} title
 * @param {string} unit
 * @param {readonly Line[]} lines
 * @param {readonly Band[]} [bands]
 */
export function lineChart(title, unit, lines, bands = []) {
  const seconds = Math.max(1, ...lines.map(({ values }) => values.length - 1))
  const highest = niceCeiling(Math.max(0, ...lines.flatMap(({ values }) => values.filter(Number.isFinite))))
  const x = (/** @type {number} */ second) => round(LEFT + (second / seconds) * (WIDTH - LEFT))
  const y = (/** @type {number} */ value) => round(TOP + (1 - value / highest) * (HEIGHT - TOP - BOTTOM))
  const marks = [0, 0.25, 0.5, 0.75, 1].map(share => share * highest)
  return `<figure><figcaption>${escapeHtml(title)}, ${escapeHtml(unit)} ${legend(lines)}</figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${escapeHtml(title)}">
${bands.map(({ from, to, label }) => `<rect class="band" x="${x(from)}" y="${TOP}" width="${round(x(to) - x(from))}" height="${HEIGHT - TOP - BOTTOM}"><title>${escapeHtml(label)}</title></rect>`).join('\n')}
${marks.map(mark => `<path class="grid" d="M${LEFT} ${y(mark)}H${WIDTH}"/><text x="${LEFT - 6}" y="${y(mark) + 4}" text-anchor="end">${round(mark)}</text>`).join('\n')}
${secondMarks(seconds)
  .map(
    second =>
      `<text x="${x(second)}" y="${HEIGHT - 6}" text-anchor="${second === seconds ? 'end' : 'middle'}">${second} s</text>`,
  )
  .join('\n')}
${lines.map(({ values }, index) => `<path class="line" stroke="${colour(index)}" d="${path(values, x, y)}"/>`).join('\n')}
</svg></figure>`
}

/** The styles that a page with charts needs. */
export const CHART_STYLE = `
figure { margin: 1.5rem 0; } figcaption { font-weight: 600; margin-bottom: .4rem; }
figcaption span { font-weight: 400; margin-left: 1rem; } svg { width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: currentColor; opacity: .7; }
.grid { stroke: currentColor; opacity: .15; } .line { fill: none; stroke-width: 1.6; } .band { fill: currentColor; opacity: .07; }`

/** @param {string} text */
export function escapeHtml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}

/** @param {readonly Line[]} lines */
function legend(lines) {
  return lines
    .map(({ label }, index) => `<span style="color:${colour(index)}">— ${escapeHtml(label)}</span>`)
    .join('')
}

/** @param {number} index */
function colour(index) {
  return COLOURS[index % COLOURS.length]
}

/** @param {readonly number[]} values @param {(second: number) => number} x @param {(value: number) => number} y */
function path(values, x, y) {
  let isDrawing = false
  return values
    .map((value, second) => {
      if (!Number.isFinite(value)) {
        isDrawing = false
        return ''
      }
      const command = isDrawing ? 'L' : 'M'
      isDrawing = true
      return `${command}${x(second)} ${y(value)}`
    })
    .join('')
}

/** @param {number} seconds */
function secondMarks(seconds) {
  return [0, 0.25, 0.5, 0.75, 1].map(share => Math.round(share * seconds))
}

/** Rounds up to 1, 2, 4, 5, 8 or 10 times a power of ten. @param {number} value */
function niceCeiling(value) {
  if (value <= 0) return 1
  const power = 10 ** Math.floor(Math.log10(value))
  return ([1, 2, 4, 5, 8, 10].find(step => step * power >= value) ?? 10) * power
}

/** @param {number} value */
function round(value) {
  return Math.round(value * 100) / 100
}
