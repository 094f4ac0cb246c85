/** Writes the report of a run as one self-contained page. */
import { CHART_STYLE, escapeHtml, lineChart } from '../report/line-chart.js'

const STYLE = `
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; } table { border-collapse: collapse; } td, th { padding: .2rem 1.2rem .2rem 0; text-align: left; }
.met { color: #0a7d5a; } .missed { color: #b91c1c; font-weight: 600; }${CHART_STYLE}`

/** @param {import('./run.js').Outcome} outcome @param {string} setting */
export function htmlReport({ options, figures, slices, cpu, verdicts }, setting) {
  const { seconds, on, off } = figures
  const bands = slices
    .filter(({ isOn }) => !isOn)
    .map(({ startMs, endMs }) => ({ from: startMs / 1000, to: endMs / 1000, label: 'limits off' }))
  const column = (/** @type {keyof import('./figures.js').Second} */ name) =>
    seconds.map(second => second[name])
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Headgate under load</title>
<style>${STYLE}</style>
<h1>${options.users} users, ${options.rate} requests a second, ${options.connections} connections</h1>
<p>${escapeHtml(setting)} Latency is counted from the moment a request was due. Shaded: limits switched off.</p>
<table>${verdicts.map(({ claim, measured, isMet }) => `<tr><td class="${isMet ? 'met' : 'missed'}">${isMet ? 'met' : 'missed'}</td><td>${escapeHtml(claim)}</td><td>${escapeHtml(measured)}</td></tr>`).join('\n')}</table>
<table><tr><th></th><th>requests</th><th>p50, ms</th><th>p90</th><th>p99</th><th>slowest</th></tr>
${row('limits on', on)}
${row('limits off', off)}</table>
${lineChart(
  'Latency',
  'ms',
  ['p50Ms', 'p90Ms', 'p99Ms', 'maxMs'].map(name => ({
    label: name.replace('Ms', ''),
    values: column(/** @type {'p50Ms'} */ (name)),
  })),
  bands,
)}
${lineChart(
  'Answers',
  'a second',
  ['allowed', 'refused', 'failed'].map(name => ({
    label: name,
    values: column(/** @type {'allowed'} */ (name)),
  })),
  bands,
)}
${lineChart(
  'Processor',
  'cores',
  ['gateway', 'redis', 'upstream', 'generator'].map(name => ({
    label: name,
    values: cpu.map(second => second[/** @type {'gateway'} */ (name)]),
  })),
  bands,
)}
</html>
`
}

/** @param {string} name @param {import('./figures.js').Part} part */
function row(name, { requests, latency }) {
  const { p50Ms, p90Ms, p99Ms, maxMs } = latency
  const cells = [p50Ms, p90Ms, p99Ms, maxMs].map(value => `<td>${value.toFixed(1)}</td>`)
  return `<tr><td>${name}</td><td>${requests}</td>${cells.join('')}</tr>`
}
