import { USER_HEADER } from '../http/rule.js'

/** The part of a policy file that makes the gateway identify a caller by this header. */
export const IDENTIFY = `identify: [{ user: { header: ${USER_HEADER}, from: [127.0.0.1] } }]`

/** Returns the bytes of a request without a body. @param {string} user @param {string} path */
export function requestOf(user, path) {
  return Buffer.from(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${USER_HEADER}: ${user}\r\n\r\n`)
}
