/**
 * Returns the first answer in the received text, or `null` while some of it is missing.
 *
 * @param {string} received One character a byte.
 * @returns {{ status: number, headLength: number, length: number } | null} Lengths in bytes; the head's with the empty line.
 */
export function readAnswer(received) {
  const headEnds = received.indexOf('\r\n\r\n')
  if (headEnds < 0) return null
  const head = received.slice(0, headEnds)
  const bodyLength = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (bodyLength === undefined) throw new Error(`an answer without a length:\n${head}`)
  const headLength = headEnds + 4
  const length = headLength + Number(bodyLength)
  if (received.length < length) return null
  return { status: Number(head.slice(9, 12)), headLength, length }
}
