/**
 * The answer at the beginning of what was received, or `null` while some of it is missing.
 *
 * @param {string} received One character a byte.
 * @returns {{ status: number } | null}
 */
export function readAnswer(received) {
  const headEnds = received.indexOf('\r\n\r\n')
  if (headEnds < 0) return null
  const head = received.slice(0, headEnds)
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length === undefined) throw new Error(`an answer without a length:\n${head}`)
  if (received.length < headEnds + 4 + Number(length)) return null
  return { status: Number(head.slice(9, 12)) }
}
