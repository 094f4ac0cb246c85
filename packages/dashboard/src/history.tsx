/** The charts' time: how far back they look, their points, and what was changed in it. */
import { useMemo } from 'preact/hooks'
import type { Point, ShownChanges } from './answers.js'
import { instant } from './format.js'
import type { Mark } from './line-chart.js'
import { usePolled } from './use-polled.js'

export const RANGES = [
  ['15m', '15 min', 900_000],
  ['6h', '6 h', 21_600_000],
  ['7d', '7 days', 604_800_000],
] as const
export type Range = (typeof RANGES)[number][0]

const EVERY_MS = 10_000

/** The points of a range; those of the last quarter of an hour are live. */
export function useHistory(range: Range, live: readonly Point[]): readonly Point[] {
  const asked = range === '15m' ? 'v1/stats/history?seconds=1' : `v1/stats/history?range=${range}`
  const { value } = usePolled<{ points: Point[] }>(asked, EVERY_MS)
  return range === '15m' ? live : (value?.points ?? [])
}

/** What was changed within a range, the oldest first. */
export function useMarks(range: Range): readonly Mark[] {
  const { value } = usePolled<ShownChanges>('v1/changes', EVERY_MS)
  return useMemo(() => {
    const [, , lengthMs] = RANGES.find(([name]) => name === range) ?? RANGES[0]
    return (value?.changes ?? [])
      .filter(({ atMs, what }) => atMs > Date.now() - lengthMs && !what.startsWith('revealed '))
      .map(({ atMs, by, what }) => ({ atMs, text: `${instant(atMs)} ${by ?? 'this machine'}: ${what}` }))
      .toReversed()
  }, [value, range])
}

export function RangeChoice({ range, onRange }: { range: Range; onRange(range: Range): void }) {
  return (
    <fieldset class="ranges">
      <legend class="hidden">Time shown</legend>
      {RANGES.map(([name, words]) => (
        <label key={name}>
          <input type="radio" name="range" checked={range === name} onChange={() => onRange(name)} />
          {words}
        </label>
      ))}
    </fieldset>
  )
}

/** The marks in words, for those who cannot point at them. */
export function MarkList({ marks }: { marks: readonly Mark[] }) {
  if (marks.length === 0) return null
  return (
    <details class="marks">
      <summary>
        {marks.length === 1 ? '1 change in this time' : `${marks.length} changes in this time`}
      </summary>
      <ul class="plain">
        {marks.toReversed().map(({ atMs, text }, index) => (
          <li key={`${atMs} ${index}`}>{text}</li>
        ))}
      </ul>
    </details>
  )
}
