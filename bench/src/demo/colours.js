/** Colours for a terminal that has them, and plain text for everything else. */

/** @typedef {Record<'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan', (text: string) => string>} Colours */

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 }

/** @param {NodeJS.WriteStream} stream @returns {Colours} */
export function coloursFor(stream) {
  const isColoured = stream.isTTY === true && stream.hasColors?.() === true && !process.env.NO_COLOR
  /** @param {number} code */
  const paint = code => (/** @type {string} */ text) => (isColoured ? `\x1b[${code}m${text}\x1b[0m` : text)
  const entries = Object.entries(CODES).map(([name, code]) => [name, paint(code)])
  return /** @type {Colours} */ (Object.fromEntries(entries))
}
