/** The words and signs of a GraphQL document, in one pass and without regular expressions: its text is a stranger's. */

export type Token = 'name' | 'string' | 'end' | Sign
/** One character that means something by itself, or the three of a spread. */
export type Sign = '{' | '}' | '(' | ')' | '[' | ']' | ':' | '@' | '...' | 'other'

const QUOTE = '"'
const BLOCK_QUOTE = '"""'
const ESCAPED_BLOCK_QUOTE = '\\"""'
const SIGNS = '{}()[]:@'

/** Reads forwards only: every character is looked at a bounded number of times. */
export class GraphqlTokens {
  /** The token that is read next. */
  token: Token = 'end'
  /** Its text, of a name. */
  text = ''
  #at = 0
  /** Before this place a string has been found to have no end. */
  #endless = 0

  constructor(readonly document: string) {
    this.advance()
  }

  /** Goes on to the next token. */
  advance(): void {
    this.#skipIgnored()
    const { document } = this
    const start = this.#at
    const first = document[start]
    this.text = ''
    if (first === undefined) this.token = 'end'
    else if (isNameStart(document.charCodeAt(start))) this.#readName(start)
    else if (first === QUOTE) this.#readString(start)
    else if (document.startsWith('...', start)) this.#take('...', 3)
    else this.#take(SIGNS.includes(first) ? (first as Sign) : 'other', 1)
  }

  #take(token: Token, length: number): void {
    this.token = token
    this.#at += length
  }

  /** Space, line ends, commas, the byte order mark and comments stand for nothing. */
  #skipIgnored(): void {
    const { document } = this
    for (; this.#at < document.length; this.#at++) {
      const character = document[this.#at] as string
      if (character === '#') this.#at = endOfLine(document, this.#at) - 1
      else if (!' \t\n\r,\ufeff'.includes(character)) return
    }
  }

  #readName(start: number): void {
    let end = start + 1
    while (end < this.document.length && isNamePart(this.document.charCodeAt(end))) end++
    this.text = this.document.slice(start, end)
    this.#take('name', end - start)
  }

  /**
   * One without an end is a sign that means nothing here: what stands behind it is still read. As far as was looked for its
   * end, no other string is looked for, or a text of quotes would be read once for each of them.
   */
  #readString(start: number): void {
    const { document } = this
    const isBlock = document.startsWith(BLOCK_QUOTE, start)
    const end =
      start < this.#endless
        ? -1
        : isBlock
          ? endOfBlock(document, start + 3)
          : endOfString(document, start + 1)
    if (end === -1) {
      if (start >= this.#endless) this.#endless = isBlock ? document.length : endOfLine(document, start)
      this.#take('other', 1)
    } else this.#take('string', end - start)
  }
}

function endOfLine(document: string, from: number): number {
  let at = from
  while (at < document.length && document[at] !== '\n' && document[at] !== '\r') at++
  return at
}

function endOfString(document: string, from: number): number {
  for (let at = from; at < document.length; at++) {
    const character = document[at]
    if (character === QUOTE) return at + 1
    if (character === '\n' || character === '\r') return -1
    if (character === '\\') at++
  }
  return -1
}

function endOfBlock(document: string, from: number): number {
  for (let at = from; at < document.length; at++) {
    if (document[at] === '\\' && document.startsWith(ESCAPED_BLOCK_QUOTE, at)) at += 3
    else if (document[at] === QUOTE && document.startsWith(BLOCK_QUOTE, at)) return at + 3
  }
  return -1
}

function isNameStart(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || code === 95
}

function isNamePart(code: number): boolean {
  return isNameStart(code) || (code >= 48 && code <= 57)
}
