/** The outcome of a replay as a self-contained page. */
import type { ReplayResult, Trial } from './replay.js'
import type { ReportOptions } from './report-text.js'
import { counted, duration, instant, number, percent, remarks, subjectName } from './report-words.js'
import type { TimeStep } from './timeline.js'

const WIDTH = 960
const HEIGHT = 180
const STYLE = `
:root { color-scheme: light dark; --denied: #c2410c; --allowed: #94a3b8; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2.5rem; }
svg { width: 100%; height: auto; } .allowed { fill: var(--allowed); } .denied { fill: var(--denied); }
table { border-collapse: collapse; margin: 1rem 0; } th, td { padding: .2rem 1.2rem .2rem 0; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; } caption { text-align: left; font-weight: 600; }
`

export function htmlReport(outcome: ReplayResult, options: ReportOptions): string {
  const { requests, fromMs, toMs, trials, differences } = outcome
  const span =
    requests === 0
      ? 'No request was found.'
      : `${counted(requests, 'request')} in ${duration(toMs - fromMs)}, from ${instant(fromMs)} to ${instant(toMs)} UTC.`
  const compared =
    differences === null
      ? ''
      : `<p>${escapeHtml(trials[0]?.name ?? '')} alone denies ${number(differences.onlyFirst)}, ${escapeHtml(trials[1]?.name ?? '')} alone ${number(differences.onlySecond)}.</p>`
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Headgate simulation</title>
<style>${STYLE}</style>
<h1>Who would have been denied</h1>
<p>${span}</p>
${trials.map(trial => section(trial, requests, options)).join('\n')}
${compared}
${remarks(outcome)
  .map(remark => `<p>${escapeHtml(remark)}.</p>`)
  .join('\n')}
</html>
`
}

function section(trial: Trial, requests: number, { top }: ReportOptions): string {
  const { name, denied, deniedInShadow, byLimit, timeline, deniedCallers } = trial
  const shadow =
    deniedInShadow === 0 ? '' : ` ${number(deniedInShadow)} more, if what is in shadow were enforced.`
  const limits = [...byLimit].sort(([, a], [, b]) => b - a)
  return `<h2>${escapeHtml(name)}: ${number(denied)} denied (${percent(denied, requests)})</h2>
<p>Each bar is ${duration(timeline.stepMs)}.${shadow}</p>
${chart(timeline.steps())}
${table(
  'By limit',
  ['limit', 'denied', 'of all denials'],
  limits.map(([limit, count]) => [limit, number(count), percent(count, denied)]),
)}
${table(
  `Who was denied most, of ${number(deniedCallers.size)}`,
  ['caller', 'denied', 'first at'],
  deniedCallers
    .top(top)
    .map(({ subject, denied: count, firstAtMs }) => [
      subjectName(subject),
      number(count),
      instant(firstAtMs),
    ]),
)}`
}

function chart(steps: readonly TimeStep[]): string {
  const highest = Math.max(1, ...steps.map(({ requests }) => requests))
  const width = WIDTH / Math.max(1, steps.length)
  const bars = steps.map(({ atMs, requests, denied }, index) => {
    const tall = (requests / highest) * HEIGHT
    const red = (denied / highest) * HEIGHT
    const at = `x="${(index * width).toFixed(2)}" width="${Math.max(0.5, width - 0.5).toFixed(2)}"`
    return `<g><title>${instant(atMs)}: ${counted(requests, 'request')}, ${number(denied)} denied</title><rect class="allowed" ${at} y="${(HEIGHT - tall).toFixed(1)}" height="${(tall - red).toFixed(1)}"/><rect class="denied" ${at} y="${(HEIGHT - red).toFixed(1)}" height="${red.toFixed(1)}"/></g>`
  })
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="Requests and denials over time">${bars.join('')}</svg>`
}

function table(caption: string, heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const head = heads.map(text => `<th scope="col">${escapeHtml(text)}</th>`).join('')
  const body = rows
    .map(
      row =>
        `<tr>${row.map((cell, column) => `<td${column === 1 ? ' class="number"' : ''}>${escapeHtml(cell)}</td>`).join('')}</tr>`,
    )
    .join('\n')
  return `<table><caption>${escapeHtml(caption)}</caption><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>`
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, sign => `&#${sign.charCodeAt(0)};`)
}
