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

/** A time to mark, and why. */
export interface Mark {
  readonly atMs: number
  readonly text: string
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
  /** Times at which somebody changed something, marked by upright lines. */
  readonly marks?: readonly Mark[]
  /** Charts of one group share their cursor. */
  readonly group?: string
  /** A value as the legend shows it. */
  format(value: number | null): string
  /** A value as the axis shows it, where there is less room. */
  formatAxis(value: number): string
}

/** The shortest time shown: a chart of a few seconds would jump with each new one. */
const LEAST_SECONDS = 60
const DAY_SECONDS = 86_400

export function LineChart(props: LineChartProps) {
  const { title, description, lines, data, height, marks = [], format } = props
  const latest = useRef(props)
  latest.current = props
  const place = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | null>(null)
  const [pointed, setPointed] = useState<number | null>(null)
  const shape = lines.map(({ label }) => label).join()
  useEffect(() => {
    const element = place.current
    if (element === null) return
    const make = (): void => {
      chart.current?.destroy()
      chart.current = new uPlot(optionsOf(element, latest, setPointed), data, element)
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
  useEffect(() => chart.current?.setData(data), [data, marks])
  const [times, ...values] = data
  const shown = pointed ?? times.length - 1
  const { peak } = scaleOf(values, 0)
  const mark = pointed === null ? undefined : marks.find(one => isNear(one, times, pointed))
  return (
    <section class="panel wide chart">
      <div class="chart-head">
        <h3>
          {title}
          {peak !== null && <span class="tag">peak {format(peak)}</span>}
        </h3>
        {mark !== undefined && <span class="mark">{mark.text}</span>}
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

/** The times shown; while there is nothing to show, uPlot has no bounds. */
function timesFrom(low: number | null, high: number | null): [number, number] {
  const end = high ?? Date.now() / 1000
  return [Math.min(low ?? end, end - LEAST_SECONDS), end]
}

/** Formats times of day, with seconds if they are less than a minute apart. */
function clockTimes(_chart: uPlot, seconds: readonly number[]): string[] {
  const isFine = seconds.length > 1 && (seconds[1] as number) - (seconds[0] as number) < 60
  const isLong = (seconds.at(-1) ?? 0) - (seconds[0] ?? 0) > DAY_SECONDS
  return seconds.map(second => {
    const at = new Date(second * 1000)
    const time = at.toLocaleTimeString('en-GB').slice(0, isFine ? 8 : 5)
    return isLong ? `${at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })} ${time}` : time
  })
}

/** Whether a mark is in the step that is pointed at. */
function isNear({ atMs }: Mark, times: ArrayLike<number>, index: number): boolean {
  const at = times[index] ?? 0
  const step = (times[index] ?? 0) - (times[index - 1] ?? at - 1)
  return (
    Math.abs(atMs / 1000 - at) <= Math.max(step, ((times[times.length - 1] ?? 0) - (times[0] ?? 0)) / 100)
  )
}

type Values = ArrayLike<number | null | undefined>

/** One spike must not make the rest a flat line: beyond three times what is usual, the axis ends and the peak is written. */
function scaleOf(
  series: readonly Values[],
  leastTop: number,
): { readonly top: number; readonly peak: number | null } {
  const values = series.flatMap(one => Array.from(one, value => value ?? 0)).sort((one, other) => one - other)
  const most = values.at(-1) ?? 0
  const usual = values.filter(value => value > 0)
  const nearlyMost = usual[Math.floor(usual.length * 0.98)] ?? most
  if (usual.length < 20 || most <= 3 * nearlyMost) return { top: Math.max(leastTop, most * 1.1), peak: null }
  return { top: Math.max(leastTop, nearlyMost * 1.5), peak: most }
}

/** Draws upright lines where somebody changed something. */
function drawMarks(chart: uPlot, marks: readonly Mark[], colour: string): void {
  const { ctx, bbox } = chart
  ctx.save()
  ctx.strokeStyle = colour
  ctx.setLineDash([3, 3])
  for (const { atMs } of marks) {
    const x = Math.round(chart.valToPos(atMs / 1000, 'x', true))
    if (x < bbox.left || x > bbox.left + bbox.width) continue
    ctx.beginPath()
    ctx.moveTo(x, bbox.top)
    ctx.lineTo(x, bbox.top + bbox.height)
    ctx.stroke()
  }
  ctx.restore()
}

function optionsOf(
  element: HTMLElement,
  latest: { readonly current: LineChartProps },
  onPoint: (index: number | null) => void,
): uPlot.Options {
  const { lines, height, leastTop, formatAxis, group } = latest.current
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
    cursor: {
      drag: { x: false, y: false },
      points: { size: 7 },
      ...(group !== undefined && { sync: { key: group, scales: ['x', null] } }),
    },
    legend: { show: false },
    hooks: {
      setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)],
      drawClear: [chart => drawMarks(chart, latest.current.marks ?? [], colour('--fourth'))],
    },
    scales: {
      x: { range: (_chart, low, high) => timesFrom(low, high) },
      y: { range: chart => [0, scaleOf(chart.data.slice(1) as Values[], leastTop).top] },
    },
    axes: [
      { ...axis, grid: { show: false }, values: clockTimes, space: 90, size: 28 },
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
