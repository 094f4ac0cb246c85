/** Reads options that are numbers. */
import { InvalidArgumentError } from 'commander'
import { mistakeAt } from 'headgate/internal'
import { UsageError } from './usage-error.js'

// Neither 0x10 nor 1e3 nor an empty text: a typing mistake must not become a number.
const DECIMAL = /^-?\d{1,15}(?:\.\d{1,15})?$/

/** Parses the number an option was given, in the usual notation. */
export function numberOf(option: string, text: string): number {
  if (DECIMAL.test(text)) return Number(text)
  throw new UsageError(mistakeAt(option, 'a number', text))
}

/** Creates a parser for an option that is a whole number within bounds. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return text => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`expected a whole number from ${least} to ${most}; got "${text}".`)
  }
}

export const parsePort = wholeNumber(0, 65_535)
