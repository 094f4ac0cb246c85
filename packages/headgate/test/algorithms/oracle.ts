/**
 * The oracle that the engine is compared with. It remembers every admission and recomputes every sum, in whole
 * numbers of any size. The clock is steady. It shares nothing with the engine, and nothing in it is clever.
 */

interface Admission {
  readonly atUs: bigint
  units: bigint
}

/** The exact answer of an algorithm, found by looking at every admission there ever was. */
export interface Oracle {
  /** Units that count now. */
  used(nowUs: number): bigint
  admit(cost: number, nowUs: number): void
  /** Returns the units given back. */
  refund(units: number, chargedAtUs: number | null, nowUs: number): number
  reset(): void
  /** Net units admitted in the half-open real interval that ends now and is `lengthUs` long. */
  admittedWithin(lengthUs: number, nowUs: number): bigint
}

/** Math.min does not take bigints. */
function least(one: bigint, other: bigint): bigint {
  if (one < other) return one
  return other
}

abstract class Remembering implements Oracle {
  protected admissions: Admission[] = []

  abstract used(nowUs: number): bigint
  protected abstract counts(admission: Admission, atUs: bigint): boolean
  /** Whether a charge made at `chargedAtUs` is in the same entry, window or part as the admission. */
  protected abstract together(admission: Admission, chargedAtUs: bigint): boolean

  admit(cost: number, nowUs: number): void {
    this.admissions.push({ atUs: BigInt(nowUs), units: BigInt(cost) })
  }

  refund(units: number, chargedAtUs: number | null, nowUs: number): number {
    const atUs = BigInt(nowUs)
    let left = BigInt(units)
    for (const admission of this.admissions) {
      if (!this.counts(admission, atUs)) continue
      if (chargedAtUs !== null && !this.together(admission, BigInt(chargedAtUs))) continue
      const back = least(left, admission.units)
      admission.units -= back
      left -= back
    }
    return units - Number(left)
  }

  reset(): void {
    this.admissions = []
  }

  admittedWithin(lengthUs: number, nowUs: number): bigint {
    const atUs = BigInt(nowUs)
    return this.sum(admission => admission.atUs > atUs - BigInt(lengthUs))
  }

  protected sum(which: (admission: Admission) => boolean): bigint {
    return this.admissions.reduce((total, one) => (which(one) ? total + one.units : total), 0n)
  }
}

/** Counts the units of the last window. */
export class LogOracle extends Remembering {
  readonly #windowUs: bigint

  constructor(windowUs: number) {
    super()
    this.#windowUs = BigInt(windowUs)
  }

  used(nowUs: number): bigint {
    const atUs = BigInt(nowUs)
    return this.sum(admission => this.counts(admission, atUs))
  }

  protected counts(admission: Admission, atUs: bigint): boolean {
    return admission.atUs > atUs - this.#windowUs && admission.atUs <= atUs
  }

  protected together(admission: Admission, chargedAtUs: bigint): boolean {
    return admission.atUs === chargedAtUs
  }
}

/** Counts the current aligned window, and the exact overlapping share of the previous one by the millisecond, rounded down. */
export class CounterOracle extends Remembering {
  readonly #windowUs: bigint

  constructor(windowUs: number) {
    super()
    this.#windowUs = BigInt(windowUs)
  }

  used(nowUs: number): bigint {
    const atUs = BigInt(nowUs)
    const index = atUs / this.#windowUs
    const current = this.sum(({ atUs }) => atUs / this.#windowUs === index)
    const previous = this.sum(({ atUs }) => atUs / this.#windowUs === index - 1n)
    const overlapMs = this.#windowUs / 1_000n - ((atUs / 1_000n) % (this.#windowUs / 1_000n))
    return current + (previous * overlapMs) / (this.#windowUs / 1_000n)
  }

  /** Units admitted in the current aligned window. */
  inAlignedWindow(nowUs: number): bigint {
    const index = BigInt(nowUs) / this.#windowUs
    return this.sum(({ atUs }) => atUs / this.#windowUs === index)
  }

  protected counts(admission: Admission, atUs: bigint): boolean {
    return admission.atUs / this.#windowUs >= atUs / this.#windowUs - 1n
  }

  protected together(admission: Admission, chargedAtUs: bigint): boolean {
    return admission.atUs / this.#windowUs === chargedAtUs / this.#windowUs
  }
}

/** Counts the current part of the window, and as many before it as make up a window, all of them whole. */
export class BucketsOracle extends Remembering {
  readonly #partUs: bigint
  readonly #buckets: bigint

  constructor(windowUs: number, buckets: number) {
    super()
    this.#buckets = BigInt(buckets)
    this.#partUs = ((BigInt(windowUs) / 1_000n + this.#buckets - 1n) / this.#buckets) * 1_000n
  }

  used(nowUs: number): bigint {
    const atUs = BigInt(nowUs)
    return this.sum(admission => this.counts(admission, atUs))
  }

  protected counts(admission: Admission, atUs: bigint): boolean {
    return admission.atUs / this.#partUs >= atUs / this.#partUs - this.#buckets
  }

  protected together(admission: Admission, chargedAtUs: bigint): boolean {
    return admission.atUs / this.#partUs === chargedAtUs / this.#partUs
  }
}

/** Returns a rate exactly: a double is a whole number times a power of two. */
export function exactRate(refillPerSecond: number): {
  readonly numerator: bigint
  readonly denominator: bigint
} {
  let numerator = refillPerSecond
  let denominator = 1n
  while (!Number.isInteger(numerator)) {
    numerator *= 2
    denominator *= 2n
  }
  return { numerator: BigInt(numerator), denominator }
}

/** The micro-tokens missing from a bucket whose refill is never rounded, times the rate's denominator. */
export class ExactBucket {
  readonly #rate: { readonly numerator: bigint; readonly denominator: bigint }
  #missing = 0n
  #atUs = 0n

  constructor(refillPerSecond: number) {
    this.#rate = exactRate(refillPerSecond)
  }

  /** Whole micro-tokens missing, rounded up. */
  missingMicro(nowUs: number): bigint {
    this.#refill(nowUs)
    return (this.#missing + this.#rate.denominator - 1n) / this.#rate.denominator
  }

  admit(cost: number, nowUs: number): void {
    this.#refill(nowUs)
    this.#missing += BigInt(cost) * 1_000_000n * this.#rate.denominator
  }

  refund(units: number, nowUs: number): void {
    this.#refill(nowUs)
    const left = this.#missing - BigInt(units) * 1_000_000n * this.#rate.denominator
    this.#missing = left > 0n ? left : 0n
  }

  #refill(nowUs: number): void {
    const elapsedUs = BigInt(nowUs) - this.#atUs
    const left = this.#missing - elapsedUs * this.#rate.numerator
    this.#missing = left > 0n ? left : 0n
    this.#atUs = BigInt(nowUs)
  }
}
