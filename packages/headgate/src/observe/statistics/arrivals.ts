/**
 * Records when a random share of the subjects asked: all requests of a sampled subject, none of the others. Other limits
 * can be replayed on the sample to estimate what they would have done to everybody.
 *
 * A hash of its name decides whether a subject is sampled. When there are too many, half of them leave: those with the
 * next bit of the hash set.
 */

import type { AskedRequest } from './asked-request.js'

export interface Arrival {
  readonly subject: string
  readonly policy: string
  readonly tier: string | null
  /** Unix time in milliseconds. */
  readonly atMs: number
  readonly cost: number
  readonly denied: boolean
  /** The request, if the rules of a policy file decided it, with the tier that a session or a key told. */
  readonly request: (Pick<AskedRequest, 'method' | 'path'> & { readonly tier: string | null }) | null
}

export interface ArrivalSample {
  /** In order of time. */
  readonly arrivals: readonly Arrival[]
  /** The share of all subjects that is in the sample. */
  readonly share: number
}

const MAX_ARRIVALS = 20_000
const MAX_SUBJECTS = 500
const KEPT_MS = 3_600_000
const FNV_OFFSET = 2_166_136_261
const FNV_PRIME = 16_777_619

export class Arrivals {
  private kept: Arrival[] = []
  private readonly subjects = new Set<string>()
  private mask = 0

  isSampled(subject: string): boolean {
    return (hashOf(subject) & this.mask) === 0
  }

  add(arrival: Arrival): void {
    this.kept.push(arrival)
    this.subjects.add(arrival.subject)
    if (this.subjects.size > MAX_SUBJECTS) this.halve()
    if (this.kept.length > MAX_ARRIVALS) this.forgetOldest(arrival.atMs)
  }

  read(nowMs: number): ArrivalSample {
    const arrivals = this.kept.filter(({ atMs }) => atMs > nowMs - KEPT_MS)
    return { arrivals, share: 1 / (this.mask + 1) }
  }

  /** Drops a quarter at once: shifting the list for every arrival would take longer than keeping it. */
  private forgetOldest(nowMs: number): void {
    this.keep(this.kept.slice(MAX_ARRIVALS / 4).filter(({ atMs }) => atMs > nowMs - KEPT_MS))
  }

  private halve(): void {
    this.mask = this.mask * 2 + 1
    this.keep(this.kept.filter(({ subject }) => (hashOf(subject) & this.mask) === 0))
  }

  private keep(arrivals: Arrival[]): void {
    this.kept = arrivals
    this.subjects.clear()
    for (const { subject } of arrivals) this.subjects.add(subject)
  }
}

/** Merges the samples of several processes: the subjects that are in all of them, in order of time. */
export function mergeArrivals(samples: readonly ArrivalSample[]): ArrivalSample {
  const share = Math.min(1, ...samples.map(sample => sample.share))
  const mask = 1 / share - 1
  const arrivals = samples
    .flatMap(sample => sample.arrivals)
    .filter(({ subject }) => (hashOf(subject) & mask) === 0)
    .toSorted((one, other) => one.atMs - other.atMs)
  return { arrivals, share }
}

/** FNV-1a, mixed once more so that its low bits depend on the whole name. */
function hashOf(text: string): number {
  let hash = FNV_OFFSET
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), FNV_PRIME)
  }
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}
