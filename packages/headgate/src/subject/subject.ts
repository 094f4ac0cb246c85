import { HeadgateError, show } from '../errors.js'
import { digest } from './digest.js'

/** Who is asking. `type` is `ip`, `user`, `apikey`, `session`, `internal`, `tenant` or one of your own. */
export interface Subject {
  readonly type: string
  readonly id: string
}

/** A subject as it may be written: `{ type: 'user', id: '42' }` or `'user:42'`. */
export type SubjectInput = Subject | `${string}:${string}`

export interface SubjectOptions {
  /** Key of the hash under which secrets are stored; give every process the same one. */
  readonly secret?: string
  /** Types whose ids are secrets and leave the process only as a keyed hash. Default: `apikey`, `session`. */
  readonly secretTypes?: readonly string[]
}

const DEFAULT_SECRET = 'headgate'
const DEFAULT_SECRET_TYPES = ['apikey', 'session']
const MAX_ID_LENGTH = 64
/** Marks an id that is a digest. An id that really begins so is digested too, so none can pass for another. */
const DIGEST_MARK = '~'
const DIGEST_MARK_CODE = DIGEST_MARK.charCodeAt(0)
const REMEMBERED_DIGESTS = 10_000
/** Longer ones are digested each time: remembering them would let callers fill the memory with their text. */
const REMEMBERED_LENGTH = 512

/** Names a subject for the store: `type:id`, with secrets and long ids replaced by their digest. */
export interface SubjectNamer {
  (subject: SubjectInput): string
  /** Whether a text is a subject, and its own name. */
  isOwnName(text: string): boolean
}

/** Makes the function that names subjects. Different subjects always get different names. */
export function createSubjectNamer(options: SubjectOptions = {}): SubjectNamer {
  const secret = options.secret ?? DEFAULT_SECRET
  if (typeof secret !== 'string' || secret === '') throw invalidOption('subject.secret', 'a non-empty string')
  const secretTypes = options.secretTypes ?? DEFAULT_SECRET_TYPES
  if (!Array.isArray(secretTypes) || secretTypes.some(type => typeof type !== 'string')) {
    throw invalidOption('subject.secretTypes', 'a list of subject types')
  }
  const secretPrefixes = secretTypes.map(type => `${type}:`)
  const digests = new Map<string, string>()

  function digestOf(text: string): string {
    const known = digests.get(text)
    if (known !== undefined) return known
    const colon = text.indexOf(':')
    const name = `${text.slice(0, colon + 1)}${DIGEST_MARK}${digest(secret, text)}`
    if (text.length > REMEMBERED_LENGTH) return name
    // Forgetting all at once is rare and needs no order of use; a digest is only a few microseconds to make again.
    if (digests.size >= REMEMBERED_DIGESTS) digests.clear()
    digests.set(text, name)
    return name
  }

  function needsDigest(text: string, colon: number): boolean {
    if (text.length - colon - 1 > MAX_ID_LENGTH) return true
    // Character codes first: this runs for every request, and most of them differ there.
    if (text.charCodeAt(colon + 1) === DIGEST_MARK_CODE) return true
    const first = text.charCodeAt(0)
    for (const prefix of secretPrefixes) {
      if (prefix.charCodeAt(0) === first && text.startsWith(prefix)) return true
    }
    return false
  }

  function nameSubject(subject: SubjectInput): string {
    const text = typeof subject === 'string' ? subject : subjectText(subject)
    const colon = text.indexOf(':')
    if (!isBetween(text, colon)) throw invalidSubject(subject)
    return needsDigest(text, colon) ? digestOf(text) : text
  }

  function isOwnName(text: string): boolean {
    const colon = text.indexOf(':')
    return isBetween(text, colon) && !needsDigest(text, colon)
  }

  return Object.assign(nameSubject, { isOwnName })
}

/** Whether there is something on both sides of the colon. */
function isBetween(text: string, colon: number): boolean {
  return colon > 0 && colon < text.length - 1
}

function subjectText(subject: Subject): string {
  if (typeof subject?.type !== 'string' || typeof subject.id !== 'string') throw invalidSubject(subject)
  if (subject.type.includes(':')) throw invalidSubject(subject)
  return `${subject.type}:${subject.id}`
}

/** Never shows the id: it may be a secret. */
function invalidSubject(subject: unknown): HeadgateError {
  const got = typeof subject === 'string' ? `a string of ${subject.length} characters` : show(subject)
  return new HeadgateError(
    'ERR_HEADGATE_INVALID_SUBJECT',
    `subject: expected 'type:id' or { type, id } with both non-empty and no ':' in type; got ${got}`,
  )
}

function invalidOption(field: string, expected: string): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_INVALID_OPTION', `${field}: expected ${expected}`)
}
