/** The gateway does not pass on answers that two clients could read in two ways. */

import { headerValues } from '../http/raw-headers.js'
import type { AnswerHead } from './end-to-end-headers.js'

/** Node accepts a header with such characters and fails when it writes it: anything but tabs and visible ones. */
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/
const NAME = /^[\w!#$%&'*+.^`|~-]+$/

/** Returns why an upstream's answer cannot be passed on, or null. Runs before anything is written. */
export function rejectAnswer(answer: AnswerHead): string | null {
  const { status, reason, rawHeaders } = answer
  if (status < 200 || status > 999) return `status ${status}`
  if (UNSENDABLE.test(reason)) return 'a reason phrase with control characters'
  const codings = headerValues(answer, 'transfer-encoding')
  if (codings.length > 1 || (codings[0] ?? 'chunked').toLowerCase() !== 'chunked') {
    return 'a transfer coding other than chunked'
  }
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (!NAME.test(rawHeaders[index] as string) || UNSENDABLE.test(rawHeaders[index + 1] as string)) {
      return 'a header that is not valid HTTP'
    }
  }
  return null
}
