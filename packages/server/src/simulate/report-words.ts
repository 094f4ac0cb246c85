/** Numbers, times and names as the reports show them. */
import { shownName } from 'headgate/internal'
import type { ReplayResult } from './replay.js'

export function number(value: number): string {
  return value.toLocaleString('en')
}

/** Formats `1 request`, `1,250 requests`. */
export function counted(value: number, one: string): string {
  return `${number(value)} ${one}${value === 1 ? '' : 's'}`
}

/** Formats `1.25 %`; a positive share is never shown as `0.00 %`. */
export function percent(part: number, whole: number): string {
  if (whole === 0 || part === 0) return '0 %'
  const value = (100 * part) / whole
  return value < 0.01 ? '< 0.01 %' : `${value.toFixed(value < 10 ? 2 : 1)} %`
}

/** Formats `2026-11-17 09:00:00`, in UTC. */
export function instant(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')
}

/** Formats `2 d 3 h`, `4 min`, `12 s`: the two largest parts. */
export function duration(ms: number): string {
  const parts: [number, string][] = [
    [Math.floor(ms / 86_400_000), 'd'],
    [Math.floor(ms / 3_600_000) % 24, 'h'],
    [Math.floor(ms / 60_000) % 60, 'min'],
    [Math.floor(ms / 1000) % 60, 's'],
  ]
  const filled = parts.filter(([count]) => count > 0).slice(0, 2)
  return filled.map(([count, unit]) => `${count} ${unit}`).join(' ') || '0 s'
}

/** Returns a subject without control characters and secrets. */
export function subjectName(subject: string): string {
  return shownName(subject)
}

/** Says which lines were left out or corrected, so that nobody overestimates the stats. */
export function remarks({ unread, outOfOrder, trials }: ReplayResult): readonly string[] {
  return [
    ...(unread > 0
      ? [
          `${counted(unread, 'line')} told of no request, or of an impossible time, caller or cost: passed over`,
        ]
      : []),
    ...(outOfOrder > 0
      ? [`${counted(outOfOrder, 'request')} earlier than the one before: counted as at the same time`]
      : []),
    ...(trials.some(({ deniedCallers }) => deniedCallers.isPartial)
      ? ['more callers were denied than are kept: counts of those denied seldom may be too low']
      : []),
  ]
}
