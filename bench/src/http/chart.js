import { barChart } from '../report/bar-chart.js'
import { formatShare } from '../report/table.js'
import { FRAMEWORKS } from './entries.js'

/** What is left of the bare framework's requests a second, for each framework and limiter. @param {readonly import('./results.js').Row[]} rows */
export function httpChart(rows) {
  const groups = FRAMEWORKS.map(framework => ({
    title: framework,
    bars: rows
      .filter(row => row.framework === framework)
      .map(({ id, who, ofBare: { median } }) => ({
        label: id.slice(framework.length + 2),
        value: median,
        text: formatShare(median),
        ours: who === 'headgate',
      })),
  }))
  return barChart("Requests a second as a share of the bare framework's", groups)
}
