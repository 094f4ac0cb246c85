/**
 * Every way some server could read the path of a request, as segments.
 *
 * Servers differ in what they normalise: case, trailing or doubled slashes, encoded letters, dot segments, path
 * parameters, fragments, encoded slashes, blanks and dots behind a name, and what follows a script. Each of these is a
 * choice that matters only if the path contains the characters concerned, and a reading is one combination of choices. Almost every request has a single reading. A
 * request is held to what each of its readings leads to (`resolve.ts`), so that no spelling is better off than another.
 */
import { percentDecoded } from '../subject/percent-decoding.js'

/** A path as one server reads it. */
export interface PathReading {
  readonly segments: readonly string[]
  /** The segments for servers that ignore case; the same list if that changes nothing. */
  readonly folded: readonly string[]
  /** Whether a segment is empty. Some servers let a parameter be empty. */
  readonly hasEmpty: boolean
}

/** Segments that every server reads the same way. */
const PLAIN = /^(?:\/[a-z0-9_~!&'()*+,:=@-]+(?:\.+[a-z0-9_~!&'()*+,:=@-]+)*)+$/
/** Files that servers run; what follows them in a path is for the script to read. */
const SCRIPT =
  /\.(?:php\d?|phtml|phar|py|pyc|wsgi|pl|cgi|fcgi|rb|lua|tcl|sh|asp|aspx|ashx|asmx|svc|axd|jsp|jspx|cfm|cfc|exe|dll|bat|cmd)$/i
/** Folders in which every file is a script. */
const SCRIPT_FOLDER = /^(?:cgi|cgi-bin|cgi-local|fcgi-bin|htbin)$/i
/**
 * No honest client writes a path that can be read in so many ways, or such a long one that can be read in several.
 */
const MAX_READINGS = 100
const MAX_WORK = 50_000

/**
 * Returns the readings of a request target: a path, a path with a query, or an absolute URL. Null if there are too
 * many.
 */
export function pathReadings(target: string): readonly PathReading[] | null {
  const plain = plainPath(target)
  if (plain !== null) return [new OneReading(plain, plain, false)]
  return unusualReadings(target)
}

/** Returns the segments of a path that every server reads alike; null for one that needs a closer look. */
function plainPath(target: string): readonly string[] | null {
  const query = target.indexOf('?')
  const path = query < 0 ? target : target.slice(0, query)
  if (!PLAIN.test(path)) return null
  const segments = path.slice(1).split('/')
  return scriptEnds(segments).length === 0 ? segments : null
}

class OneReading implements PathReading {
  constructor(
    readonly segments: readonly string[],
    readonly folded: readonly string[],
    readonly hasEmpty: boolean,
  ) {}
}

function unusualReadings(target: string): readonly PathReading[] | null {
  const path = cutAt(target, /\?/)
  let texts: ReadonlySet<string> = new Set([path])
  for (const choose of CHOICES) {
    texts = chosen(texts, choose)
    if (isTooMuch(texts.size, path)) return null
  }
  const readings: PathReading[] = []
  for (const text of texts) {
    for (const segments of foldings(text)) {
      for (const end of [segments.length, ...scriptEnds(segments)]) {
        readings.push(readingOf(segments.slice(0, end)))
        if (isTooMuch(readings.length, path)) return null
      }
    }
  }
  return readings
}

function isTooMuch(count: number, { length }: string): boolean {
  return count > MAX_READINGS || (count > 2 && count * length > MAX_WORK)
}

function chosen(
  texts: ReadonlySet<string>,
  choose: (text: string) => readonly string[],
): ReadonlySet<string> {
  const all = new Set<string>()
  for (const text of texts) for (const reading of choose(text)) all.add(reading)
  return all
}

/** The changes that servers make to a path before they split it, in order. */
const CHOICES: readonly ((text: string) => readonly string[])[] = [
  text => (text.startsWith('/') ? [text] : withoutOrigin(text)),
  // A fragment does not belong in a request; some servers cut it off, others take it for part of the path.
  text => (text.includes('#') ? [cutAt(text, /#/), text] : [text]),
  // Servers keep path parameters, end the path at them as at a query, or drop them from each segment.
  text => (text.includes(';') ? [text, cutAt(text, /;/), text.replace(/;[^/\\]*/g, '')] : [text]),
  text => (text.includes('%') ? [upperHex(text), decode(text, RESERVED), ...decodedWhole(text)] : [text]),
  // `new URL(target, base)` takes the text after two slashes for a host, and the path starts after it.
  text => {
    const afterHost = AUTHORITY.exec(text)?.[1]
    return afterHost === undefined ? [text] : [text, afterHost]
  },
  text => (text.includes('\\') ? [text, text.replaceAll('\\', '/')] : [text]),
  // Where strings end at a zero byte, so does the path.
  text => (text.includes('\0') ? [text, text.slice(0, text.indexOf('\0'))] : [text]),
  // Servers that trim a path, and patterns whose `$` also matches before a line end.
  text => [text, trimSegments(text, isBlank)],
  // Windows opens the same file whatever dots, spaces and names of a stream follow its name.
  text => [text, trimSegments(text.replace(STREAM, ''), char => char === '.' || isBlank(char))],
]

const STREAM = /:[^:/]*:\$[^/]*/g

/** Returns the path with the end of each segment removed; the segments `.` and `..` stay. */
function trimSegments(text: string, isDropped: (char: string) => boolean): string {
  const trim = (segment: string) => {
    if (segment === '.' || segment === '..') return segment
    let end = segment.length
    while (end > 0 && isDropped(segment.charAt(end - 1))) end--
    return segment.slice(0, end)
  }
  return text.split('/').map(trim).join('/')
}

function isBlank(char: string): boolean {
  return char <= ' ' || (char >= '\u007f' && char <= '\u00a0') || char.trim() === ''
}

const AUTHORITY = /^[/\\]{2,}[^/\\]*(.*)$/s
/** The characters that `decodeURI` leaves encoded. */
const RESERVED = /[;/?:@&=+$,#]/g
const NOTHING = /(?!)/g
const MAX_DECODED = 3

/**
 * Some servers decode before they look for a query, and some decode what they have already decoded, such as Python's
 * CGI server and any behind a proxy that decodes.
 */
function decodedWhole(text: string): readonly string[] {
  const all: string[] = []
  let decoded = text
  for (let times = 0; times < MAX_DECODED && (times === 0 || decoded.includes('%')); times++) {
    decoded = decode(decoded, NOTHING)
    all.push(decoded)
    if (/[?#;]/.test(decoded)) all.push(cutAt(decoded, /[?#;]/))
  }
  return all
}

/**
 * Returns an absolute URL without its origin. Also covers `*path`, because Fastify takes any first character for
 * the slash.
 */
function withoutOrigin(target: string): readonly string[] {
  if (target.startsWith('*')) return [target, `/${target.slice(1)}`]
  const afterHost = ABSOLUTE.exec(target)?.[1]
  const afterSlashes = LENIENT_ABSOLUTE.exec(target)?.[1]
  return afterHost === undefined || afterSlashes === undefined ? [target] : [afterHost, afterSlashes]
}

const ABSOLUTE = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\\]*(.*)$/is
/** `new URL` skips any number of slashes: the host of `http:///a/b` is a. */
const LENIENT_ABSOLUTE = /^[a-z][a-z0-9+.-]*:[/\\]*[^/?#\\]*(.*)$/is

function cutAt(text: string, where: RegExp): string {
  const end = text.search(where)
  return end < 0 ? text : text.slice(0, end)
}

function upperHex(text: string): string {
  return text.replace(/%[0-9a-f]{2}/gi, escaped => escaped.toUpperCase())
}

/** Decodes once: `%252f` becomes `%2f`. */
function decode(text: string, kept: RegExp): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, escapes => {
    const decoded = percentDecoded(escapes) ?? decodeBytes(escapes)
    return decoded.replace(kept, encodeURIComponent)
  })
}

function decodeBytes(escapes: string): string {
  return escapes.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

/**
 * Returns the segments with and without everything that servers normalise: doubled slashes, dots, trailing slashes.
 */
function foldings(text: string): readonly (readonly string[])[] {
  const segments = text.split('/')
  if (text.startsWith('/')) segments.shift()
  const all: (readonly string[])[] = []
  for (const list of withMerged(segments)) {
    addWithoutEnd(all, list)
    if (!list.some(isDots)) continue
    for (const resolved of withMerged(resolveDots(list))) addWithoutEnd(all, resolved)
  }
  return all
}

/** Adds the list as it is and without trailing slashes, which many servers ignore. */
function addWithoutEnd(all: (readonly string[])[], segments: readonly string[]): void {
  all.push(segments)
  if (segments.at(-1) !== '') return
  let end = segments.length
  while (end > 0 && segments[end - 1] === '') end--
  all.push(segments.slice(0, end))
  if (end < segments.length - 1) all.push(segments.slice(0, -1))
}

/**
 * Returns the list as it is and with doubled slashes merged. Some servers do this before resolving dots, some
 * after, some never.
 */
function withMerged(segments: readonly string[]): readonly (readonly string[])[] {
  return segments.slice(0, -1).includes('') ? [segments, merge(segments)] : [segments]
}

/** Merges doubled slashes; a trailing one stays. */
function merge(segments: readonly string[]): readonly string[] {
  return segments.filter((segment, index) => segment !== '' || index === segments.length - 1)
}

const DOT = /^(?:\.|%2e)$/i
const DOTS = /^(?:\.|%2e){2}$/i

function isDots(segment: string): boolean {
  return DOT.test(segment) || DOTS.test(segment)
}

function resolveDots(segments: readonly string[]): readonly string[] {
  const resolved: string[] = []
  for (const segment of segments) {
    if (DOTS.test(segment)) resolved.pop()
    else if (!DOT.test(segment)) resolved.push(segment)
  }
  // `/login/.` is the folder login, with a trailing slash.
  if (isDots(segments.at(-1) ?? '')) resolved.push('')
  return resolved
}

/**
 * Returns where the path may end for a server that runs scripts: behind each of them that something follows, which is
 * its path info.
 */
function scriptEnds(segments: readonly string[]): readonly number[] {
  const ends: number[] = []
  let isInFolder = false
  for (let index = 0; index < segments.length - 1; index++) {
    const segment = segments[index] as string
    if (segment !== '' && (isInFolder || SCRIPT.test(segment))) ends.push(index + 1)
    isInFolder ||= SCRIPT_FOLDER.test(segment)
  }
  return ends
}

function readingOf(segments: readonly string[]): PathReading {
  const folded = segments.map(foldCase)
  const isSame = folded.every((segment, index) => segment === segments[index])
  return new OneReading(segments, isSame ? segments : folded, segments.includes(''))
}

const MAY_FOLD = /[A-Z\u0080-\uffff]/

/**
 * Folds case as `toLowerCase` does and as case-insensitive regular expressions do, which also match a long s with
 * an s.
 */
export function foldCase(segment: string): string {
  if (!MAY_FOLD.test(segment)) return segment
  return segment.toLowerCase().replaceAll('\u017f', 's')
}

/** Returns a literal segment of a pattern in every form a reading may have: as written, and decoded. */
export function spellingsOf(literal: string): readonly string[] {
  if (!literal.includes('%')) return [literal]
  return [...new Set([upperHex(literal), decode(literal, RESERVED), decode(literal, NOTHING)])]
}
