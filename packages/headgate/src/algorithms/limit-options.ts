/** What the options of all limits have in common: names, what is counted, bounds; and the numbers derived from a limit. */
import { unexpected } from '../errors/headgate-error.js'
import { rejectUnknown } from '../errors/reject-unknown.js'
import { wholeNumber } from '../errors/whole-number.js'
import { type Limit, MAX_UNITS, type OptionField, type Quota } from './algorithm.js'

const NAME = /^[A-Za-z0-9_-]{1,32}$/

/** Options that every kind of limit has. */
export interface Named {
  /** Distinguishes two limits of one policy that have the same algorithm and window. */
  readonly name?: string
}

/** Limits over time can count requests instead of units. */
export interface Counting {
  /** `requests`: each request takes one unit whatever it costs. Default `cost`. */
  readonly counts?: 'cost' | 'requests'
}

export const NAME_FIELD: OptionField = {
  kind: 'name',
  text: 'Distinguishes two limits of the same kind and window.',
}
export const COUNTS_FIELD: OptionField = {
  kind: 'counts',
  text: 'What a request takes: `cost`, the default, or with `requests` one unit whatever it costs.',
}

/** Validates a limit or capacity, naming `field` in the rejection. */
export function parseUnits(value: unknown, field: string): number {
  return parseWhole(value, field, 0, MAX_UNITS)
}

/** Validates a whole number of an option. */
export function parseWhole(value: unknown, field: string, least: number, most: number): number {
  return wholeNumber(value, field, least, most, 'ERR_HEADGATE_INVALID_LIMIT')
}

/** Rejects anything but an object of options with known names. */
export function parseKnown<Options>(options: unknown, maker: string, known: readonly string[]): Options {
  if (typeof options !== 'object' || options === null)
    throw unexpected('ERR_HEADGATE_INVALID_LIMIT', maker, 'an object of options', options)
  rejectUnknown(options, known, { code: 'ERR_HEADGATE_INVALID_LIMIT', before: `${maker}.` })
  return options as Options
}

/** The quota of a limit that advertises its own numbers. */
export function quotaOf(limit: number, windowUs: number): Quota {
  return Object.freeze({ limit, windowUs, burst: null })
}

/** The limit's id and what it counts. Counting requests is part of the id. */
export function counted(
  { name, counts = 'cost' }: Named & Counting,
  kind: string,
): Pick<Limit, 'id' | 'counts'> {
  if (counts !== 'cost' && counts !== 'requests')
    throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'counts', "'cost' or 'requests'", counts)
  return counts === 'cost'
    ? { id: limitId(name, kind) }
    : { id: limitId(name, requestsKind(kind)), counts: 'requests' }
}

/** Algorithm and window are always part of the id, so that changing either does not meet the other's state. */
export function limitId(name: string | undefined, kind: string): string {
  if (name === undefined) return kind
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'name', 'up to 32 letters, digits, - or _', name)
  }
  return `${name}-${kind}`
}

function requestsKind(kind: string): string {
  return `requests-${kind}`
}

/** What `counted` and `limitId` were given, as the options of a file. */
export function namingOf({ id, counts }: Limit, kind: string): Readonly<Record<string, string>> {
  const end = `-${counts ? requestsKind(kind) : kind}`
  return {
    ...(counts && { counts }),
    ...(id.endsWith(end) && { name: id.slice(0, -end.length) }),
  }
}

/** Scales units, rounding down but to at least 1. A ban stays a ban. */
export function scaleUnits(units: number, factor: number): number {
  // The epsilon keeps a factor such as 1.1 from losing a unit to binary rounding.
  return units === 0 ? 0 : Math.min(MAX_UNITS, Math.max(1, Math.floor(units * factor + 1e-9)))
}

/** The limit with other units, and a quota changed alike: what advertised the old number advertises the new one. */
export function resized<L extends Limit>(limit: L, units: number, factor: number): L {
  const { quota } = limit
  const numberOf = (told: number) => (told === limit.limit ? units : scaleUnits(told, factor))
  return {
    ...limit,
    limit: units,
    quota: {
      ...quota,
      limit: numberOf(quota.limit),
      burst: quota.burst === null ? null : numberOf(quota.burst),
    },
  }
}

/** Units that may still be charged beyond a limit of which `used` are: up to twice the limit in all. */
export function roomBeyond({ limit }: Limit, used: number): number {
  return Math.max(0, Math.min(2 * limit, MAX_UNITS) - used)
}

/** Whether two limits count the same thing, and what uses the stricter one up fits into the other. */
export function isNotAbove(stricter: Limit, limit: Limit): boolean {
  return stricter.counts === limit.counts && stricter.limit <= limit.limit
}
