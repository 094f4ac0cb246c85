import type { Limit } from '../engine/limit.js'
import type { KeptDenial } from './kept-denial.js'

/** Enough that clients who hammer at the same time seldom share a slot. A power of two. */
const PLACES = 64
const NOBODY = -1

/**
 * The last denials, one for each slot that rows share. Whoever writes to a row other than through the denied
 * question must forget its denial.
 */
export class KeptDenials {
  // Rows are kept apart from denials: most requests are for a row without one, and comparing one number shows that.
  private readonly rows = new Int32Array(PLACES).fill(NOBODY)
  private readonly denials: (KeptDenial | null)[] = new Array(PLACES).fill(null)

  find(row: number, limit: Limit, nowUs: number): KeptDenial | null {
    const place = row % PLACES
    return this.rows[place] === row ? this.stillTrue(place, limit, nowUs) : null
  }

  keep(row: number, denial: KeptDenial): void {
    this.rows[row % PLACES] = row
    this.denials[row % PLACES] = denial
  }

  forget(row: number): void {
    const place = row % PLACES
    if (this.rows[place] === row) this.clear(place)
  }

  /** An expired one is forgotten: the next request may be admitted, and the clock may step back after that. */
  private stillTrue(place: number, limit: Limit, nowUs: number): KeptDenial | null {
    const denial = this.denials[place] as KeptDenial
    if (denial.answers(limit, nowUs)) return denial
    this.clear(place)
    return null
  }

  private clear(place: number): void {
    this.rows[place] = NOBODY
    this.denials[place] = null
  }
}
