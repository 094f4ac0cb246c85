/** Lines over time, drawn by uPlot in the colours of the page. */
import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { instant } from './format.js'

export interface Line {
  readonly label: string
  /** The name of a colour of the style sheet: `--accent`. */
  readonly colour: string
  readonly fill?: boolean
  readonly isDashed?: boolean
}

export interface LineChartProps {
  readonly title: string
  /** The description for readers who cannot see the lines. */
  readonly description: string
  readonly lines: readonly Line[]
  /** Unix seconds, then a list of values a line; null where a value is missing. */
  readonly data: uPlot.AlignedData
  readonly height: number
  /** The lowest maximum of the axis, so that tiny values look tiny. */
  readonly leastTop: number
  /** A value as the legend shows it. */
  format(value: number | null): string
  /** A value as the axis shows it, where there is less room. */
  formatAxis(value: number): string
}

/** The shortest time shown: a chart of a few seconds would jump with each new one. */
const LEAST_SECONDS = 60

export function LineChart(props: LineChartProps) {
  const { title, description, lines, data, height, format } = props
  const place = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | null>(null)
  const [pointed, setPointed] = useState<number | null>(null)
  const shape = lines.map(({ label }) => label).join()
  useEffect(() => {
    const element = place.current
    if (element === null) return
    const make = (): void => {
      chart.current?.destroy()
      chart.current = new uPlot(optionsOf(element, props, setPointed), data, element)
    }
    make()
    const resized = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height }))
    resized.observe(element)
    const dark = matchMedia('(prefers-color-scheme: dark)')
    dark.addEventListener('change', make)
    return () => {
      dark.removeEventListener('change', make)
      resized.disconnect()
      chart.current?.destroy()
      chart.current = null
    }
    // Other lines need another chart; other values do not.
  }, [shape, height])
  useEffect(() => chart.current?.setData(data), [data])
  const [times, ...values] = data
  const shown = pointed ?? times.length - 1
  return (
    <section class="panel wide chart">
      <div class="chart-head">
        <h3>{title}</h3>
        <dl class="legend">
          {lines.map(({ label, colour, isDashed }, index) => (
            <div key={label} class={`key ${colour.slice(2)}${isDashed ? ' dashed' : ''}`}>
              <dt>{label}</dt>
              <dd>{format(values[index]?.[shown] ?? null)}</dd>
            </div>
          ))}
          <div class="key time">
            <dt class="hidden">time</dt>
            <dd>{times[shown] === undefined ? '' : instant(times[shown] * 1000)}</dd>
          </div>
        </dl>
      </div>
      <div ref={place} role="img" aria-label={description} />
    </section>
  )
}

/** Formats times of day, with seconds if they are less than a minute apart. */
function clockTimes(_chart: uPlot, seconds: readonly number[]): string[] {
  const isFine = seconds.length > 1 && (seconds[1] as number) - (seconds[0] as number) < 60
  return seconds.map(second => new Date(second * 1000).toLocaleTimeString('en-GB').slice(0, isFine ? 8 : 5))
}

function optionsOf(
  element: HTMLElement,
  { lines, height, leastTop, formatAxis }: LineChartProps,
  onPoint: (index: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(element)
  const colour = (name: string): string => style.getPropertyValue(name).trim()
  const axis: uPlot.Axis = {
    stroke: colour('--soft'),
    ticks: { show: false },
    font: `12px ${style.fontFamily}`,
    gap: 8,
  }
  return {
    width: element.clientWidth,
    height,
    padding: [8, 24, 0, 0],
    cursor: { drag: { x: false, y: false }, points: { size: 7 } },
    legend: { show: false },
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
    scales: {
      x: { range: (_chart, low, high) => [Math.min(low, high - LEAST_SECONDS), high] },
      y: { range: (_chart, _low, high) => [0, Math.max(leastTop, high * 1.1)] },
    },
    axes: [
      { ...axis, grid: { show: false }, values: clockTimes, space: 80, size: 28 },
      {
        ...axis,
        grid: { stroke: colour('--rule'), width: 1 },
        size: 48,
        space: 36,
        values: (_chart, values) => values.map(formatAxis),
      },
    ],
    series: [
      {},
      ...lines.map(({ label, colour: name, fill = false, isDashed = false }) => ({
        label,
        stroke: colour(name),
        width: 1.5,
        points: { show: false },
        ...(isDashed && { dash: [4, 3] }),
        ...(fill && { fill: `${colour(name)}1f` }),
      })),
    ],
  }
}
