import { HeadgateError, isHeadgateError } from '../../errors/headgate-error.js'
import { printable } from '../../errors/shown-text.js'

/**
 * The error of a script that fails over the value of one key, in the words of Redis 7 and of Redis 6, which
 * prefixes them. Errors about the node contain the name of the script too, but at their end.
 */
const ABOUT_ONE_KEY =
  /\bWRONGTYPE |HEADGATE_PERIOD |value is not (?:an integer|a valid float)|\bERR (?:Error running script \(call to f_[0-9a-f]{40}\): )?user_(?:script|function): ?\d{1,9}: /

/** The error of what was asked of Redis beside the requests: a Redis that hangs must not hold up whoever reads it. */
export function lateReply(ms: number): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_STORE_TIMEOUT', `redis: no answer within ${ms} ms`)
}

/**
 * Converts a failure to the store's own error. Clients attach commands to their errors, including a password, or
 * put the whole script into the message: none of that is passed on, nor any control characters.
 */
export function storeError(error: unknown): HeadgateError {
  if (isHeadgateError(error)) return error
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  const reason = String(message.split(', command was:', 1)[0])
  const cause = Object.defineProperty(new Error(reason), 'name', { value: name })
  cause.stack = stack?.replace(message, () => reason) ?? ''
  const code = ABOUT_ONE_KEY.test(reason) ? 'ERR_HEADGATE_STORE_KEY' : 'ERR_HEADGATE_STORE'
  return new HeadgateError(code, `redis: ${printable(reason)}`, { cause })
}
