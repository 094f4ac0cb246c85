import { barChart } from '../../report/bar-chart.js'
import { formatRate } from '../../report/table.js'
import { CONTESTANTS } from '../contestants/contestants.js'
import { TITLES, WORKLOAD_IDS } from '../workloads.js'
import { affordableBy, fastest, rowsOf } from './results.js'

const IN_FLIGHT = 512
const PEERS = [...new Set(CONTESTANTS.filter(({ role }) => role === 'peer').map(({ name }) => name))]

/** Charts each library with its fastest client in every workload, ours first. @param {import('./results.js').Results} results */
export function speedChart(results) {
  const names = [
    ...new Set(CONTESTANTS.filter(({ role }) => role === 'headgate').map(({ name }) => name)),
    ...PEERS.filter(name => name !== 'bottleneck'),
  ]
  const groups = WORKLOAD_IDS.map(workload => {
    const rows = rowsOf(results, workload, IN_FLIGHT)
    const bars = names.flatMap(name => {
      const row = fastest(rows, entry => entry.name === name)
      if (row === undefined) return []
      const value = affordableBy(row)
      return [{ label: name, value, text: formatRate(value), ours: name.startsWith('headgate') }]
    })
    return { title: `(${workload}) ${TITLES[workload]}`, bars }
  })
  return barChart(
    'Decisions a second that a core for Node and one for Redis afford, 512 requests in flight, each library with its fastest client',
    groups.filter(group => group.bars.length > 0),
  )
}
