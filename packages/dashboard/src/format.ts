/** Formats stats for the page: few digits, and a dash for an unknown value. */
const UNKNOWN = '–'

const WHOLE = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })
const SMALL = new Intl.NumberFormat('en', { maximumFractionDigits: 1, minimumFractionDigits: 1 })

/** `1,234`, `12.3`, `0`. */
export function number(value: number | null): string {
  if (value === null) return UNKNOWN
  return value === 0 || Math.abs(value) >= 100 || Number.isInteger(value)
    ? WHOLE.format(value)
    : SMALL.format(value)
}

/** A share from 0 to 1 as `2.5 %`. */
export function percent(share: number | null, digits = 1): string {
  return share === null ? UNKNOWN : `${(share * 100).toFixed(digits)} %`
}

export function milliseconds(value: number | null): string {
  if (value === null) return UNKNOWN
  return `${value < 10 ? value.toFixed(2) : WHOLE.format(value)} ms`
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB']

export function bytes(value: number | null): string {
  if (value === null) return UNKNOWN
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, value)) / 10))
  return `${(value / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${UNITS[power]}`
}

/** `<1 s`, `12 s`, `3 min`, `2 h`, `4 d`: the largest part. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds === 0 && ms > 0) return '<1 s'
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`
}

/** Formats the time of day, with the date if it is not today. */
export function instant(atMs: number): string {
  const at = new Date(atMs)
  const time = at.toLocaleTimeString('en-GB')
  return at.toDateString() === new Date().toDateString() ? time : `${at.toISOString().slice(0, 10)} ${time}`
}
