/**
 * Parses JSON with positions. `JSON.parse` drops positions, silently takes the last of two equal keys, and makes
 * objects. This reads the same texts into `Map`s and keeps the offset of every key and value.
 */
import { type Complaint, type ConfigIssue, type Path, toIssue } from '../config-error.js'
import { type LocatedText, MAX_DEPTH, positionIn } from './located-text.js'

/** The offset of a value, and those of its contents. */
interface Spot {
  readonly offset: number
  readonly children?: ReadonlyMap<string | number, { readonly keyOffset: number; readonly spot: Spot }>
}

interface Parsed {
  readonly value: unknown
  readonly spot: Spot
}

class JsonMistake extends Error {
  readonly offset: number
  readonly complaint: Complaint

  constructor(offset: number, complaint: Complaint) {
    super()
    this.offset = offset
    this.complaint = complaint
  }
}

/** Parses a JSON text. Duplicate keys are issues; parsing stops at the first syntax error. */
export function readJson(text: string): LocatedText {
  const reader = new JsonReader(text)
  try {
    const { value, spot } = reader.readAll()
    return {
      value,
      issues: reader.issues,
      locate: (path, at) => positionIn(text, offsetOf(spot, path, at)),
    }
  } catch (error) {
    if (!(error instanceof JsonMistake)) throw error
    const place = positionIn(text, error.offset)
    return { value: null, issues: [toIssue([], error.complaint, place)], locate: () => place }
  }
}

class JsonReader {
  readonly issues: ConfigIssue[] = []
  readonly #text: string
  #offset = 0

  constructor(text: string) {
    this.#text = text
  }

  readAll(): Parsed {
    const parsed = this.#readValue([])
    this.#skipBlanks()
    if (this.#offset < this.#text.length) throw this.#mistake('the end of the text')
    return parsed
  }

  #readValue(path: Path): Parsed {
    this.#skipBlanks()
    const offset = this.#offset
    if (path.length > MAX_DEPTH) {
      throw new JsonMistake(offset, { expected: `at most ${MAX_DEPTH} levels`, got: 'more' })
    }
    const first = this.#text[offset]
    if (first === '{') return this.#readObject(path)
    if (first === '[') return this.#readArray(path)
    if (first === '"') return { value: this.#readString(), spot: { offset } }
    return { value: this.#readWord(), spot: { offset } }
  }

  #readObject(path: Path): Parsed {
    const offset = this.#offset++
    const value = new Map<string, unknown>()
    const children = new Map<string | number, { keyOffset: number; spot: Spot }>()
    for (let more = !this.#take('}'); more; more = this.#goesOn('}')) {
      this.#skipBlanks()
      const keyOffset = this.#offset
      if (this.#text[keyOffset] !== '"') throw this.#mistake('a key in double quotes')
      const key = this.#readString()
      if (!this.#take(':')) throw this.#mistake('a colon')
      const below = [...path, key]
      if (value.has(key)) this.#rejectTwice(below, keyOffset)
      const item = this.#readValue(below)
      value.set(key, item.value)
      children.set(key, { keyOffset, spot: item.spot })
    }
    return { value, spot: { offset, children } }
  }

  #readArray(path: Path): Parsed {
    const offset = this.#offset++
    const value: unknown[] = []
    const children = new Map<string | number, { keyOffset: number; spot: Spot }>()
    for (let more = !this.#take(']'); more; more = this.#goesOn(']')) {
      const item = this.#readValue([...path, value.length])
      children.set(value.length, { keyOffset: item.spot.offset, spot: item.spot })
      value.push(item.value)
    }
    return { value, spot: { offset, children } }
  }

  #readString(): string {
    const start = this.#offset
    let end = start + 1
    while (end < this.#text.length && this.#text[end] !== '"') end += this.#text[end] === '\\' ? 2 : 1
    this.#offset = Math.min(end + 1, this.#text.length)
    try {
      return JSON.parse(this.#text.slice(start, this.#offset))
    } catch {
      this.#offset = start
      throw this.#mistake('a text that ends on its line, with known escapes')
    }
  }

  #readWord(): unknown {
    const pattern = /[^\s,:[\]{}"]{1,400}/y
    pattern.lastIndex = this.#offset
    const [word = ''] = pattern.exec(this.#text) ?? []
    try {
      const value: unknown = JSON.parse(word)
      this.#offset += word.length
      return value
    } catch {
      throw this.#mistake('a value')
    }
  }

  /** After a member: whether a comma announces another one. */
  #goesOn(close: '}' | ']'): boolean {
    if (this.#take(',')) return true
    if (this.#take(close)) return false
    throw this.#mistake(`a comma or ${close}`)
  }

  #take(character: string): boolean {
    this.#skipBlanks()
    if (this.#text[this.#offset] !== character) return false
    this.#offset++
    return true
  }

  #skipBlanks(): void {
    while (' \t\n\r'.includes(this.#text[this.#offset] ?? 'end')) this.#offset++
  }

  #rejectTwice(path: Path, offset: number): void {
    const complaint = { expected: 'each key once', got: 'it again' }
    if (this.issues.length < 20) {
      this.issues.push(toIssue(path, complaint, positionIn(this.#text, offset)))
    }
  }

  #mistake(expected: string): JsonMistake {
    const character = this.#text[this.#offset]
    return new JsonMistake(this.#offset, {
      expected: `valid JSON, here ${expected}`,
      got: character === undefined ? 'the end of the text' : JSON.stringify(character),
    })
  }
}

function offsetOf(top: Spot, path: Path, at: 'key' | 'value'): number {
  let spot = top
  for (const [index, part] of path.entries()) {
    const child = spot.children?.get(part)
    if (child === undefined) return spot.offset
    if (at === 'key' && index === path.length - 1) return child.keyOffset
    spot = child.spot
  }
  return spot.offset
}
