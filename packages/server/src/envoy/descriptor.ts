/** A question of Envoy's, whichever protocol it came by. */
import type { Mistake } from 'headgate/internal'
import { mistakeText } from 'headgate/internal'

export interface RateLimitAsk {
  readonly domain: string
  readonly descriptors: readonly Descriptor[]
  /** For descriptors that give none themselves; 0 and 1 are one unit. */
  readonly hitsAddend: number
}

export interface Descriptor {
  /** Their order matters. */
  readonly entries: readonly Entry[]
  /** A limit that replaces the configured one. */
  readonly limit: { readonly requestsPerUnit: number; readonly unit: Unit } | null
  /** Units; 0 only peeks. Null: those of the whole question. */
  readonly hitsAddend: number | null
  /** Whether the units are given back. */
  readonly isNegativeHits: boolean
}

export interface Entry {
  readonly key: string
  readonly value: string
}

/** In the order of their numbers on the wire, from 1. */
export const UNITS = ['second', 'minute', 'hour', 'day', 'month', 'year', 'week'] as const

export type Unit = (typeof UNITS)[number]

/** As in envoyproxy/ratelimit: a month is 30 days. */
export const UNIT_SECONDS: Readonly<Record<Unit, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 7 * 86_400,
  month: 30 * 86_400,
  year: 365 * 86_400,
}

/** A question that cannot be answered: the caller has to change it. */
export class AskError extends Error {
  override readonly name = 'AskError'
  readonly mistake: Mistake

  /** `words` replaces the message, where envoyproxy/ratelimit has one of its own. */
  constructor(mistake: Mistake, words = mistakeText(mistake)) {
    super(words)
    this.mistake = mistake
  }
}

const MAX_DESCRIPTORS = 256
const MAX_ENTRIES = 64
const MAX_HITS = 2 ** 32 - 1

/** Throws an `AskError` for what no service of this protocol accepts, and for too many descriptors. */
export function rejectAsk({ domain, descriptors, hitsAddend }: RateLimitAsk): void {
  if (domain === '')
    throw new AskError(
      { field: 'domain', expected: 'a name', got: '""' },
      'rate limit domain must not be empty',
    )
  if (descriptors.length === 0)
    throw new AskError(
      { field: 'descriptors', expected: 'one at least', got: 'none' },
      'rate limit descriptor list must not be empty',
    )
  rejectMore('descriptors', descriptors.length, MAX_DESCRIPTORS)
  rejectHits(hitsAddend)
  for (const { entries, hitsAddend: own } of descriptors) {
    if (entries.length === 0)
      throw new AskError({ field: 'descriptors', expected: 'entries', got: 'one without any' })
    if (entries.some(({ key }) => key === ''))
      throw new AskError({ field: 'entries', expected: 'keys', got: 'an empty one' })
    rejectMore('entries', entries.length, MAX_ENTRIES)
    rejectHits(own ?? 0)
  }
}

function rejectMore(field: string, got: number, most: number): void {
  if (got > most) throw new AskError({ field, expected: `at most ${most}`, got: String(got) })
}

function rejectHits(hits: number): void {
  if (Number.isInteger(hits) && hits >= 0 && hits <= MAX_HITS) return
  throw new AskError({
    field: 'hits_addend',
    expected: `a whole number from 0 to ${MAX_HITS}`,
    got: String(hits),
  })
}
