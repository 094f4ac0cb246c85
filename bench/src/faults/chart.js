import { barChart } from '../report/bar-chart.js'

const OURS = 'headgate'

/**
 * Charts how long callers waited during each fault, at the 99th percentile.
 *
 * @param {readonly (readonly string[])[]} rows The run's table: fault, limiter, p99 and further figures.
 */
export function waitChart(rows) {
  const faults = [...new Set(rows.map(([fault]) => fault ?? ''))]
  return barChart(
    'How long callers wait while Redis fails (99th percentile, shorter is better)',
    faults.map(title => ({
      title,
      bars: rows
        .filter(([fault]) => fault === title)
        .map(([, label = '', p99 = '']) => ({
          ...{ label, text: p99, ours: label === OURS },
          value: Number.parseFloat(p99),
        })),
    })),
  )
}
