import { type Duration, type Limit, slidingWindowCounter, slidingWindowLog, tokenBucket } from 'headgate'
import { UNIT_SECONDS, UNITS, type Unit } from '../descriptor.js'
import type { DescriptorLimit } from './descriptor-tree.js'
import { DescriptorConfigError, type Fields, fieldsOf, flagAt, textAt, unexpected } from './fields.js'

type ParsedLimit = Omit<DescriptorLimit, 'mode' | 'metadata'>

const FIELDS = ['name', 'replaces', 'unit', 'requests_per_unit', 'unlimited', 'algorithm', 'window', 'burst']
const ALGORITHMS = ['sliding-window-counter', 'sliding-window-log', 'token-bucket']
const MAX_UNITS = 2 ** 32 - 1

/** Parses `rate_limit`. Throws a `DescriptorConfigError`, or the library's error for numbers it does not accept. */
export function parseRateLimit(value: Fields, at: string): ParsedLimit {
  const fields = fieldsOf(value, at, FIELDS)
  const name = fields.name === undefined || fields.name === null ? '' : textAt(fields.name, `${at}.name`)
  const common = { name, replaces: parseReplaces(fields.replaces, name, `${at}.replaces`) }
  if (flagAt(fields.unlimited, `${at}.unlimited`)) {
    const beside = ['unit', 'window', 'algorithm', 'burst'].find(field => fields[field] !== undefined)
    if (beside !== undefined)
      throw new DescriptorConfigError({ field: `${at}.${beside}`, expected: 'none beside unlimited' })
    return { ...common, limit: null, requestsPerUnit: MAX_UNITS, unit: null }
  }
  const { window, unit } = parseWindow(fields, at)
  const requestsPerUnit = parseUnits(fields.requests_per_unit, `${at}.requests_per_unit`)
  return { ...common, requestsPerUnit, unit, limit: makeLimit(fields, at, requestsPerUnit, window) }
}

/** Returns the limit of a number per unit, by the default algorithm. */
export function defaultLimit(requestsPerUnit: number, unit: Unit): Limit {
  return slidingWindowCounter({ limit: requestsPerUnit, window: windowOf(unit) })
}

function windowOf(unit: Unit): Duration {
  return `${UNIT_SECONDS[unit]}s`
}

function makeLimit({ algorithm, burst }: Fields, at: string, limit: number, window: Duration): Limit {
  const isBurst = burst !== undefined && burst !== null
  const chosen = algorithm ?? (isBurst ? 'token-bucket' : 'sliding-window-counter')
  if (typeof chosen !== 'string' || !ALGORITHMS.includes(chosen)) {
    throw unexpected(`${at}.algorithm`, `one of ${ALGORITHMS.join(', ')}`, chosen, ALGORITHMS)
  }
  if (isBurst && chosen !== 'token-bucket') {
    throw new DescriptorConfigError({
      field: `${at}.burst`,
      expected: 'beside algorithm token-bucket, or no algorithm',
    })
  }
  if (chosen === 'sliding-window-log') return slidingWindowLog({ limit, window })
  // A bucket without a refill is a ban; a window says that plainly.
  if (chosen === 'sliding-window-counter' || limit === 0) return slidingWindowCounter({ limit, window })
  const capacity = isBurst ? parseUnits(burst, `${at}.burst`) : limit
  const { windowUs } = slidingWindowLog({ limit, window })
  return tokenBucket({ capacity, refillPerSecond: (limit * 1e6) / windowUs })
}

function parseWindow({ unit, window }: Fields, at: string): { window: Duration; unit: Unit | null } {
  if ((unit === undefined || unit === null) === (window === undefined || window === null)) {
    throw new DescriptorConfigError({ field: `${at}.unit`, expected: 'either a unit or a window' })
  }
  if (window !== undefined && window !== null) {
    const { windowUs } = slidingWindowLog({ limit: 1, window: window as Duration })
    const same = UNITS.find(one => UNIT_SECONDS[one] * 1e6 === windowUs) ?? null
    return { window: window as Duration, unit: same }
  }
  const known = UNITS.find(one => one === String(unit).toLowerCase())
  if (known === undefined) throw unexpected(`${at}.unit`, `one of ${UNITS.join(', ')}`, unit, UNITS)
  return { window: windowOf(known), unit: known }
}

function parseUnits(value: unknown, at: string): number {
  if (Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_UNITS) return Number(value)
  throw unexpected(at, `a whole number from 0 to ${MAX_UNITS}`, value)
}

function parseReplaces(value: unknown, own: string, at: string): readonly string[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw unexpected(at, 'a list of names', value)
  return value.map((one: unknown, index) => {
    const name = textAt(fieldsOf(one, `${at}[${index}]`, ['name']).name, `${at}[${index}].name`)
    if (name === own)
      throw new DescriptorConfigError({ field: `${at}[${index}].name`, expected: 'another', got: 'its own' })
    return name
  })
}
