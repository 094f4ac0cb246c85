import { barChart } from '../report/bar-chart.js'
import { formatShare } from '../report/table.js'
import { FRAMEWORKS } from './entries.js'

/** Charts how much of a framework's speed each limiter leaves. Ours sends its default headers. @param {readonly import('./results.js').Row[]} rows */
export function httpChart(rows) {
  const groups = FRAMEWORKS.map(framework => ({
    title: framework,
    bars: rows
      .filter(row => row.framework === framework && row.style !== 'none' && row.style !== 'ietf')
      .map(({ id, who, share: { median } }) => ({
        label: id.slice(framework.length + 2),
        value: median,
        text: formatShare(median),
        ours: who.startsWith('headgate'),
      })),
  }))
  return barChart('What is left of the web framework, by processor time', groups)
}
