/** The HTTP that load generators speak: just enough to tell one response from the next. */

/** The header that says who is asking. */
export const USER_HEADER = 'x-user'

/** The part of a policy file that makes the gateway identify a caller by this header. */
export const IDENTIFY = `identify: [{ user: { header: ${USER_HEADER}, from: [127.0.0.1] } }]`

/** Returns the bytes of a request without a body. @param {string} user @param {string} path */
export function requestOf(user, path) {
  return Buffer.from(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${USER_HEADER}: ${user}\r\n\r\n`)
}

/**
 * Returns the first response in the received text, or `undefined` while some of it is missing.
 *
 * @param {string} received One character a byte.
 * @returns {{ status: number, headLength: number, length: number } | undefined} Lengths in bytes; the head's with the empty line.
 */
export function readResponse(received) {
  const headEnds = received.indexOf('\r\n\r\n')
  if (headEnds < 0) return undefined
  const head = received.slice(0, headEnds)
  const bodyLength = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (bodyLength === undefined) throw new Error(`a response without a length:\n${head}`)
  const headLength = headEnds + 4
  const length = headLength + Number(bodyLength)
  if (received.length < length) return undefined
  return { status: Number(head.slice(9, 12)), headLength, length }
}
