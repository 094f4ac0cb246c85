import { InvalidArgumentError } from 'commander'

/** Reads the value of an option that is a whole number within bounds. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return text => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`expected a whole number from ${least} to ${most}; got "${text}".`)
  }
}
