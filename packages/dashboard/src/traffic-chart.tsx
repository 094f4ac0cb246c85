import { useMemo } from 'preact/hooks'
import { number } from './format.js'
import { type Line, LineChart } from './line-chart.js'
import type { Point } from './snapshot.js'

const LINES: readonly Line[] = [
  { label: 'allowed a second', colour: '--calm', fill: true },
  { label: 'denied a second', colour: '--accent', fill: true },
]

/** Allowed and denied requests of the last quarter of an hour. */
export function TrafficChart({ history }: { history: readonly Point[] }) {
  const data = useMemo(
    (): [number[], number[], number[]] => [
      history.map(({ atMs }) => atMs / 1000),
      history.map(({ allowed }) => allowed),
      history.map(({ denied }) => denied),
    ],
    [history],
  )
  const last = history.at(-1)
  const words =
    last === undefined
      ? 'no requests yet'
      : `now ${number(last.allowed)} allowed and ${number(last.denied)} denied`
  return (
    <section class="panel" aria-labelledby="traffic-title">
      <h3 id="traffic-title">Requests</h3>
      <LineChart
        description={`Requests a second over time: ${words}`}
        lines={LINES}
        data={data}
        height={220}
      />
    </section>
  )
}
