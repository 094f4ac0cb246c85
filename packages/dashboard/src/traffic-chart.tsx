import { useMemo } from 'preact/hooks'
import type { Point } from './answers.js'
import { milliseconds, number } from './format.js'
import { type Line, LineChart, type Mark } from './line-chart.js'

const REQUESTS: readonly Line[] = [
  { label: 'allowed', colour: '--calm', fill: true },
  { label: 'denied', colour: '--accent', fill: true },
]
const OVERHEAD: readonly Line[] = [
  { label: 'p50', colour: '--soft', isDashed: true },
  { label: 'p99', colour: '--calm', fill: true },
]
const SHADOW: readonly Line[] = [
  { label: 'in shadow', colour: '--fourth', fill: true },
  { label: 'denied', colour: '--accent' },
]
const HEIGHT = 200

export interface ChartProps {
  readonly history: readonly Point[]
  readonly marks: readonly Mark[]
}

/** The charts of a page share their cursor. */
const GROUP = 'traffic'

/** Allowed and denied requests over time. */
export function TrafficChart({ history, marks }: ChartProps) {
  const data = useSeries(
    history,
    ({ allowed }) => allowed,
    ({ denied }) => denied,
  )
  const last = history.at(-1)
  const words =
    last === undefined
      ? 'no requests yet'
      : `now ${number(last.allowed)} allowed and ${number(last.denied)} denied`
  return (
    <LineChart
      title="Requests/s"
      description={`Requests per second over time: ${words}`}
      lines={REQUESTS}
      data={data}
      marks={marks}
      group={GROUP}
      height={HEIGHT}
      leastTop={5}
      format={number}
      formatAxis={number}
    />
  )
}

/** How long deciding took over time. */
export function OverheadChart({ history, marks }: ChartProps) {
  const data = useSeries(
    history,
    ({ p50Ms }) => p50Ms,
    ({ p99Ms }) => p99Ms,
  )
  const last = history.at(-1)
  return (
    <LineChart
      title="Overhead, ms"
      description={`Time to decide over time: now p50 ${milliseconds(last?.p50Ms ?? null)}, p99 ${milliseconds(last?.p99Ms ?? null)}`}
      lines={OVERHEAD}
      data={data}
      marks={marks}
      group={GROUP}
      height={HEIGHT}
      leastTop={0.1}
      format={milliseconds}
      formatAxis={number}
    />
  )
}

/** Requests that passed and that limits in shadow would have denied, beside those denied. */
export function ShadowChart({ history, marks }: ChartProps) {
  const data = useSeries(
    history,
    ({ shadowDenied }) => shadowDenied,
    ({ denied }) => denied,
  )
  return (
    <LineChart
      title="Would be denied/s"
      description={`Requests per second that limits in shadow would have denied: now ${number(history.at(-1)?.shadowDenied ?? null)}`}
      lines={SHADOW}
      data={data}
      marks={marks}
      group={GROUP}
      height={HEIGHT}
      leastTop={5}
      format={number}
      formatAxis={number}
    />
  )
}

type Series = [number[], (number | null)[], (number | null)[]]
type Value = (point: Point) => number | null

function useSeries(history: readonly Point[], one: Value, other: Value): Series {
  return useMemo(
    (): Series => [history.map(({ atMs }) => atMs / 1000), history.map(one), history.map(other)],
    [history],
  )
}
