/**
 * Reads how many tokens a model's answer took, from the bytes of the answer as they pass: JSON or server-sent events, shaped
 * like those of OpenAI, Anthropic or Gemini, in pieces of any size. Keeps a few hundred bytes, whatever comes, and never throws.
 *
 * Only numbers where providers put them count (`usage`, `message.usage`, `response.usage`, `usageMetadata`): text of the model
 * that looks like JSON is inside a string, and an object of the same name elsewhere is somebody's data.
 */

/** A number of tokens; `invalid` if what is in its place is not one; null if nothing is. */
export type Count = number | 'invalid' | null

/** What an answer says that it took. The latest number holds: streams repeat them, growing. */
export interface Usage {
  /** The whole prompt, also what the provider had in its cache. */
  readonly input: Count
  /** The whole answer, also what it thought. */
  readonly output: Count
  readonly total: Count
}

export type AnswerFormat = 'json' | 'events'

/** Returns how to read an answer of this type; null if it has no usage. */
export function answerFormat(contentType: string): AnswerFormat | null {
  const [type = ''] = contentType.split(';', 1)
  const plain = type.trim().toLowerCase()
  if (plain === 'text/event-stream') return 'events'
  return /^application\/(?:[\w.-]+\+)?(?:json|x-ndjson|jsonl)$/.test(plain) ? 'json' : null
}

export class UsageReader {
  private readonly json = new JsonScanner()
  private readonly bytes: JsonScanner | EventLines

  constructor(format: AnswerFormat) {
    this.bytes = format === 'json' ? this.json : new EventLines(this.json)
  }

  write(chunk: Uint8Array): void {
    this.bytes.write(chunk)
  }

  /** Bytes of generated text so far. */
  get textBytes(): number {
    return this.json.textBytes
  }

  usage(): Usage {
    const { counts } = this.json
    const input = sum(counts, INPUT, INPUT_TOO)
    const told = sum(counts, TOTAL, [])
    const ofAnswer = sum(counts, OUTPUT, OUTPUT_TOO)
    // Embeddings have a prompt and a total alone.
    const rest = typeof told === 'number' && typeof input === 'number' ? Math.max(0, told - input) : null
    const output = ofAnswer ?? rest
    const added = typeof input === 'number' && typeof output === 'number' ? input + output : null
    return { input, output, total: typeof told === 'number' ? told : (added ?? told) }
  }
}

const INPUT = ['prompt_tokens', 'input_tokens', 'promptTokenCount'] as const
const INPUT_TOO = [
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
  'toolUsePromptTokenCount',
] as const
const OUTPUT = ['completion_tokens', 'output_tokens', 'candidatesTokenCount'] as const
const OUTPUT_TOO = ['thoughtsTokenCount'] as const
const TOTAL = ['total_tokens', 'totalTokenCount'] as const

type Field = (typeof INPUT | typeof INPUT_TOO | typeof OUTPUT | typeof OUTPUT_TOO | typeof TOTAL)[number]
const FIELDS: ReadonlySet<string> = new Set([...INPUT, ...INPUT_TOO, ...OUTPUT, ...OUTPUT_TOO, ...TOTAL])
type Counts = ReadonlyMap<string, number | 'invalid'>

/** The first of the names that is there, and with it what the provider counts apart. */
function sum(counts: Counts, names: readonly Field[], apart: readonly Field[]): Count {
  const name = names.find(one => counts.has(one))
  if (name === undefined) return null
  let tokens = 0
  for (const one of [name, ...apart]) {
    const count = counts.get(one) ?? 0
    if (count === 'invalid') return 'invalid'
    tokens += count
  }
  return tokens
}

/**
 * Where in an answer an object or list is. `root-list`: the whole answer, as Gemini streams it. `message`: of the event that begins
 * an Anthropic stream; its `usage` (`usage-of-prompt`) has a placeholder for the answer. `response`: of an event of OpenAI's
 * Responses. `generated`: `choices`, `candidates` or `delta`, and everything in them.
 */
type Place =
  | 'elsewhere'
  | 'root'
  | 'root-list'
  | 'message'
  | 'response'
  | 'usage'
  | 'usage-of-prompt'
  | 'generated'

const TEXT_KEYS: ReadonlySet<string> = new Set([
  'content',
  'text',
  'thinking',
  'reasoning',
  'reasoning_content',
  'refusal',
  'partial_json',
  'arguments',
  'delta',
])

/** Deeper than anything of interest. What is below it is skipped by counting brackets. */
const MAX_DEPTH = 16
const MAX_KEY = 32
const MAX_LITERAL = 24
const MAX_TOKENS = 2 ** 32 - 1

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COMMA = 0x2c
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const COLON = 0x3a
const SPACE = 0x20
const LINE_FEED = 0x0a
const RETURN = 0x0d

/** Follows JSON byte by byte, one value after the other, and picks out the counts. What is not JSON leads to no counts. */
class JsonScanner {
  readonly counts = new Map<string, number | 'invalid'>()
  textBytes = 0
  private depth = 0
  private readonly isObject: boolean[] = new Array(MAX_DEPTH + 1).fill(false)
  private readonly places: Place[] = new Array(MAX_DEPTH + 1).fill('elsewhere')
  private readonly keys: string[] = new Array(MAX_DEPTH + 1).fill('')
  private expectsKey = false
  private isInString = false
  private isEscaped = false
  /** What is known of the string or the literal that is being read; null if it does not matter. */
  private text: string | null = null
  private isKey = false
  private isText = false
  private isInLiteral = false

  write(chunk: Uint8Array, from = 0, to = chunk.length): void {
    for (let index = from; index < to; index++) {
      if (this.isInString) index = this.skipText(chunk, index, to)
      if (index === to) return
      const byte = chunk[index] as number
      if (this.isInString) this.inString(byte)
      else if (byte === QUOTE) this.beginString()
      else if (byte > SPACE && !isStructural(byte)) this.inLiteral(byte)
      else {
        if (this.isInLiteral) this.endLiteral()
        if (byte > SPACE) this.structure(byte)
      }
    }
  }

  /** Whatever comes next is another value. */
  reset(): void {
    this.depth = 0
    this.isInString = false
    this.isEscaped = false
    this.isInLiteral = false
    this.expectsKey = false
    this.text = null
  }

  /** Most of an answer is text, of which only the length matters. Returns where something else comes. */
  private skipText(chunk: Uint8Array, from: number, to: number): number {
    if (this.isEscaped || this.text !== null) return from
    let index = from
    while (index < to && chunk[index] !== QUOTE && chunk[index] !== BACKSLASH) index++
    if (this.isText) this.textBytes += index - from
    return index
  }

  private inString(byte: number): void {
    if (this.isEscaped) {
      this.isEscaped = false
      if (this.isText) this.textBytes++
      return
    }
    if (byte === QUOTE) return void this.endString()
    if (byte === BACKSLASH) {
      this.isEscaped = true
      // No name that matters is written with one.
      this.text = null
      return
    }
    if (this.isText) this.textBytes++
    if (this.text !== null)
      this.text = this.text.length < MAX_KEY ? this.text + String.fromCharCode(byte) : null
  }

  private beginString(): void {
    if (this.isInLiteral) this.endLiteral()
    this.isInString = true
    this.isKey = this.expectsKey && this.depth <= MAX_DEPTH
    this.text = this.isKey ? '' : null
    this.isText = !this.isKey && this.isGenerated()
    if (!this.isKey) this.note('invalid')
  }

  private endString(): void {
    this.isInString = false
    this.isText = false
    if (this.isKey) this.keys[this.depth] = this.text ?? ''
    this.isKey = false
    this.expectsKey = false
    this.text = null
  }

  private inLiteral(byte: number): void {
    if (!this.isInLiteral) {
      this.isInLiteral = true
      this.text = ''
    }
    if (this.text !== null)
      this.text = this.text.length < MAX_LITERAL ? this.text + String.fromCharCode(byte) : null
  }

  private endLiteral(): void {
    this.isInLiteral = false
    // Streams say null until they know.
    if (this.text !== 'null') this.note(countOf(this.text))
    this.text = null
  }

  private structure(byte: number): void {
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) return void this.open(byte === OPEN_OBJECT)
    if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      this.depth = Math.max(0, this.depth - 1)
      this.expectsKey = false
    } else {
      this.expectsKey =
        byte === COMMA && this.depth <= MAX_DEPTH && this.isObject[this.depth] === true && this.depth > 0
    }
  }

  private open(isObject: boolean): void {
    this.note('invalid')
    const place = this.placeBelow(isObject)
    this.depth++
    this.expectsKey = isObject && this.depth <= MAX_DEPTH
    if (this.depth > MAX_DEPTH) return
    this.isObject[this.depth] = isObject
    this.places[this.depth] = place
    this.keys[this.depth] = ''
  }

  private placeBelow(isObject: boolean): Place {
    if (this.depth > MAX_DEPTH) return 'elsewhere'
    if (this.depth === 0) return isObject ? 'root' : 'root-list'
    const key = this.keys[this.depth] as string
    switch (this.places[this.depth]) {
      case 'root-list':
        return isObject ? 'root' : 'elsewhere'
      case 'root':
        if (key === 'usage' || key === 'usageMetadata') return 'usage'
        if (key === 'message') return 'message'
        if (key === 'response') return 'response'
        return key === 'choices' || key === 'candidates' || key === 'delta' ? 'generated' : 'elsewhere'
      case 'response':
        return key === 'usage' ? 'usage' : 'elsewhere'
      case 'message':
        return key === 'usage' ? 'usage-of-prompt' : 'elsewhere'
      case 'generated':
        return 'generated'
      default:
        return 'elsewhere'
    }
  }

  private isGenerated(): boolean {
    if (this.depth === 0 || this.depth > MAX_DEPTH) return false
    const key = this.keys[this.depth] as string
    const place = this.places[this.depth]
    return place === 'root' ? key === 'delta' : place === 'generated' && TEXT_KEYS.has(key)
  }

  /** Notes what is in the place of a count. */
  private note(count: number | 'invalid'): void {
    if (this.depth === 0 || this.depth > MAX_DEPTH || this.expectsKey) return
    const place = this.places[this.depth]
    if (place !== 'usage' && place !== 'usage-of-prompt') return
    const key = this.keys[this.depth] as string
    if (!FIELDS.has(key)) return
    if (place === 'usage-of-prompt' && (OUTPUT as readonly string[]).includes(key)) return
    this.counts.set(key, count)
  }
}

function isStructural(byte: number): boolean {
  return (
    byte === COMMA ||
    byte === COLON ||
    byte === OPEN_OBJECT ||
    byte === CLOSE_OBJECT ||
    byte === OPEN_LIST ||
    byte === CLOSE_LIST
  )
}

function countOf(literal: string | null): number | 'invalid' {
  const tokens = literal === null || literal === '' ? Number.NaN : Number(literal)
  return Number.isInteger(tokens) && tokens >= 0 && tokens <= MAX_TOKENS ? tokens : 'invalid'
}

const DATA = [...'data:'].map(letter => letter.charCodeAt(0))

/** Splits a stream of events into lines, and hands on what is in its `data`. */
class EventLines {
  /** How much of `data:` the line began with; −1 for another line. */
  private matched = 0
  private isEmpty = true
  private isAfterReturn = false

  constructor(private readonly json: JsonScanner) {}

  write(chunk: Uint8Array): void {
    let index = 0
    while (index < chunk.length) {
      const byte = chunk[index] as number
      if (byte === LINE_FEED || byte === RETURN) {
        // A return and a line feed end one line.
        if (!(byte === LINE_FEED && this.isAfterReturn)) this.endLine()
        this.isAfterReturn = byte === RETURN
        index++
        continue
      }
      this.isAfterReturn = false
      this.isEmpty = false
      if (this.matched < DATA.length) {
        this.matched = this.matched >= 0 && byte === DATA[this.matched] ? this.matched + 1 : -1
        index++
        if (this.matched !== -1) continue
        index = endOfLine(chunk, index)
        continue
      }
      const end = endOfLine(chunk, index)
      this.json.write(chunk, index, end)
      index = end
    }
  }

  private endLine(): void {
    if (this.isEmpty) this.json.reset()
    else if (this.matched === DATA.length) this.json.write(LINE_END)
    this.matched = 0
    this.isEmpty = true
  }
}

const LINE_END = Uint8Array.of(LINE_FEED)

function endOfLine(chunk: Uint8Array, from: number): number {
  let index = from
  while (index < chunk.length && chunk[index] !== LINE_FEED && chunk[index] !== RETURN) index++
  return index
}
