import { type ErrorCode, unexpected } from './headgate-error.js'

/** Validates a whole number in a range, naming the field in the rejection. */
export function wholeNumber(
  value: unknown,
  field: string,
  least: number,
  most: number,
  code: ErrorCode = 'ERR_HEADGATE_INVALID_OPTION',
): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most)
    return value as number
  throw unexpected(code, field, `a whole number from ${least} to ${most}`, value)
}
