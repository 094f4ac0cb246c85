/**
 * a × b ÷ c in whole numbers, exact although a × b may need 77 bits.
 *
 * A limit of 2^32 − 1 times a window of 366 days in microseconds leaves the 53 bits in which doubles are exact.
 * So the product is never formed: `a` is taken apart into digits of 7 bits and divided as on paper, and each step
 * stays below 2^53 because 255 × 366 days in µs does. Within that range floor(x / c) of doubles is exact too: the
 * distance of x / c to the next whole number is at least 1 / c, more than half a unit in the last place.
 */

const DIGIT = 128
const TOP_DIGIT = 128 ** 4

/** floor(a × b ÷ c) for a < 2^35, b ≤ 366 days in µs, 0 < c ≤ 366 days in µs. */
export function mulDivFloor(a: number, b: number, c: number): number {
  const product = a * b
  if (product <= Number.MAX_SAFE_INTEGER) return Math.floor(product / c)
  let quotient = 0
  let remainder = 0
  let rest = a
  for (let place = TOP_DIGIT; place >= 1; place /= DIGIT) {
    const digit = Math.floor(rest / place)
    rest -= digit * place
    const step = remainder * DIGIT + digit * b
    const part = Math.floor(step / c)
    quotient = quotient * DIGIT + part
    remainder = step - part * c
  }
  return quotient
}

/** ceil(a × b ÷ c), for the same ranges. */
export function mulDivCeil(a: number, b: number, c: number): number {
  const product = a * b
  if (product <= Number.MAX_SAFE_INTEGER) return Math.ceil(product / c)
  // For 0 ≤ b ≤ c: ceil(a·b/c) = a − floor(a·(c−b)/c), which needs no remainder of its own.
  return a - mulDivFloor(a, c - b, c)
}
