import { HeadgateError, isHeadgateError } from '../../errors/headgate-error.js'
import { printable } from '../../errors/shown-text.js'

/**
 * The error of a script that fails over what one key holds, in the words of Redis 7 and of Redis 6, which puts its own
 * before them. Errors about the node carry the name of the script too, but at their end.
 */
const ABOUT_ONE_KEY =
  /\bWRONGTYPE |value is not (?:an integer|a valid float)|\bERR (?:Error running script \(call to f_[0-9a-f]{40}\): )?user_(?:script|function): ?\d{1,9}: /

/**
 * A failure as the store's own. Clients hang commands on their errors, a password among them, or put the whole script
 * into the message: none of that is passed on, nor anything a terminal would obey.
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
