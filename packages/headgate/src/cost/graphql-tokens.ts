/**
 * Splits a GraphQL document into tokens in one pass, without regular expressions, because the text is untrusted.
 */

export type Token = 'name' | 'string' | 'end' | Sign
/** A character with a meaning of its own, or the three of a spread. */
export type Sign = '{' | '}' | '(' | ')' | '[' | ']' | ':' | '@' | '...' | 'other'

const QUOTE = '"'
const BLOCK_QUOTE = '"""'
const ESCAPED_BLOCK_QUOTE = '\\"""'
const SIGNS = '{}()[]:@'

/** Reads forwards only: every character is looked at a bounded number of times. */
export class GraphqlTokens {
  /** The current token. */
  token: Token = 'end'
  /** The text of a name. */
  text = ''
  #at = 0
  /** No string that starts before this offset has an end. */
  #endless = 0

  constructor(readonly document: string) {
    this.advance()
  }

  /** Moves on to the next token. */
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

  /** Skips space, line ends, commas, the byte order mark and comments. */
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
   * Reads a string. One without an end becomes a meaningless token, and reading continues after the quote. Up to
   * where its end was searched for, no other string is searched, or else a text full of quotes would be scanned
   * once for each of them.
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
