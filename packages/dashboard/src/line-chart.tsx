/** Lines over time, drawn by uPlot in the colours of the page. */
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'

export interface Line {
  readonly label: string
  /** The name of a colour of the style sheet: `--accent`. */
  readonly colour: string
  readonly fill?: boolean
}

export interface LineChartProps {
  /** The description for readers who cannot see the lines. */
  readonly description: string
  readonly lines: readonly Line[]
  /** Unix seconds, then a list of values a line; null where a value is missing. */
  readonly data: uPlot.AlignedData
  readonly height: number
}

export function LineChart({ description, lines, data, height }: LineChartProps) {
  const place = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | null>(null)
  const shape = lines.map(({ label }) => label).join()
  useEffect(() => {
    const element = place.current
    if (element === null) return
    const make = (): void => {
      chart.current?.destroy()
      chart.current = new uPlot(optionsOf(element, lines, height), data, element)
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
  return <div ref={place} class="chart" role="img" aria-label={description} />
}

/** Times of day with seconds where they are less than a minute apart. */
function clockTimes(_chart: uPlot, seconds: readonly number[]): string[] {
  const isFine = seconds.length > 1 && (seconds[1] as number) - (seconds[0] as number) < 60
  return seconds.map(second => new Date(second * 1000).toLocaleTimeString('en-GB').slice(0, isFine ? 8 : 5))
}

function optionsOf(element: HTMLElement, lines: readonly Line[], height: number): uPlot.Options {
  const style = getComputedStyle(element)
  const colour = (name: string): string => style.getPropertyValue(name).trim()
  const axis: uPlot.Axis = {
    stroke: colour('--soft'),
    grid: { stroke: colour('--rule'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui, sans-serif',
  }
  return {
    width: element.clientWidth,
    height,
    cursor: { drag: { x: false, y: false } },
    legend: { live: true },
    scales: { y: { range: (_chart, _low, high) => [0, Math.max(1, high * 1.1)] } },
    axes: [
      { ...axis, values: clockTimes },
      { ...axis, size: 56 },
    ],
    series: [
      { label: 'time', value: '{HH}:{mm}:{ss}' },
      ...lines.map(({ label, colour: name, fill = false }) => ({
        label,
        stroke: colour(name),
        width: 1.5,
        points: { show: false },
        value: (_chart: uPlot, value: number | null) => (value === null ? '–' : value.toFixed(1)),
        ...(fill && { fill: `${colour(name)}22` }),
      })),
    ],
  }
}
