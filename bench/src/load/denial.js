/** Headers that a denial has to carry beside `Retry-After`. */
const HEADERS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'X-RateLimit-Policy']

/** Whether an answer says how much is left. An answer without Redis does not, because nobody knows. @param {string} head */
export function tellsQuota(head) {
  return /\r\nX-RateLimit-/i.test(head)
}

/**
 * Returns why a client could not act on a 429, or `null` if it could.
 *
 * @param {import('../harness/connection.js').Answer} answer
 */
export function faultOfDenial({ head, body }) {
  const header = (/** @type {string} */ name) => new RegExp(`\\r\\n${name}: (.*)\\r\\n`, 'i').exec(head)?.[1]
  if (!/^[1-9]\d*$/.test(header('Retry-After') ?? '')) return `Retry-After: ${header('Retry-After')}`
  const missing = tellsQuota(head) && HEADERS.find(name => header(name) === undefined)
  if (missing) return `no ${missing}`
  if (tellsQuota(head) && header('X-RateLimit-Remaining') !== '0')
    return `X-RateLimit-Remaining: ${header('X-RateLimit-Remaining')}`
  if (!header('Content-Type')?.startsWith('application/problem+json'))
    return `Content-Type: ${header('Content-Type')}`
  try {
    const { status, title } = JSON.parse(body)
    return status === 429 && typeof title === 'string' ? null : `body: ${body}`
  } catch {
    return `body is not JSON: ${body}`
  }
}
