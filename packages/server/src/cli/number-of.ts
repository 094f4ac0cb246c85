import { mismatch } from 'headgate/config'
import { UsageError } from './usage-error.js'

// Neither 0x10 nor 1e3 nor nothing at all: what was typed by mistake must not become a number.
const DECIMAL = /^-?\d{1,15}(?:\.\d{1,15})?$/

/** The number an option was given, as people write numbers. */
export function numberOf(option: string, text: string): number {
  if (DECIMAL.test(text)) return Number(text)
  throw new UsageError(`${option}: ${mismatch('a number', text)}`)
}
