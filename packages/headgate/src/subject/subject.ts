import { HeadgateError, invalidOption, show } from '../errors/headgate-error.js'
import { looksSecret } from '../errors/shown-text.js'
import { type Address, formatAddress, isIPv4, parseAddress } from './address.js'
import { digest } from './digest.js'
import { networkOf } from './network.js'

/**
 * The party that is asking. `type` is `ip`, `user`, `apikey`, `session`, `internal`, `tenant` or one of your
 * own.
 */
export interface Subject {
  readonly type: string
  readonly id: string
}

/** A subject as callers may write it: `{ type: 'user', id: '42' }` or `'user:42'`, of the form `type:id`. */
export type SubjectInput = Subject | string

/**
 * A subject by the name it is stored under, as `nameOf` returns it. For operators only: a caller who could ask
 * by it would act as any subject whose digest it knows.
 */
export interface StoredSubject {
  readonly stored: string
}

/** Returns the name in a `StoredSubject`; null for anything else. */
export function storedName(subject: unknown): string | null {
  const stored = subject instanceof Object && 'stored' in subject ? subject.stored : undefined
  return typeof stored === 'string' && stored.indexOf(':') > 0 ? stored : null
}

export interface SubjectOptions {
  /** The key with which secrets are hashed before they are stored. Give every process the same one. */
  readonly secret?: string
  /**
   * Types whose ids are secrets and leave the process only as a keyed hash, in addition to the types that look
   * like secrets: `apikey`, `session`, `token` and every type that contains such a word.
   */
  readonly secretTypes?: readonly string[]
  /**
   * Budgets of the networks around an IPv6 caller's /64. Default `{ '/56': 4, '/48': 16 }`; in a limiter, the
   * policy file's.
   */
  readonly ipv6Networks?: Ipv6Networks
  /**
   * Called once each: when a secret is hashed without a `secret`, and for an id such as `undefined`. Default
   * `console.warn`.
   */
  readonly onWarning?: (warning: SubjectWarning) => void
}

/**
 * How many times a caller's limit all callers of a wider IPv6 network have together, by the size of the network
 * from /48 to /63. A caller is charged to its /64 and to these, all or none.
 */
export type Ipv6Networks = Readonly<Record<`/${number}`, number>> | 'off'

export interface SubjectWarning {
  readonly code: 'WARN_HEADGATE_DEFAULT_SECRET' | 'WARN_HEADGATE_NAMES_NOBODY'
  readonly message: string
}

const DEFAULT_SECRET = 'headgate'
const MAX_ID_LENGTH = 64
const IP = 'ip'
/**
 * Marks an id that is a digest. An id that already starts with it is digested too, so that no id can pass for a
 * digest.
 */
const DIGEST_MARK = '~'
const DIGEST_MARK_CODE = DIGEST_MARK.charCodeAt(0)
const LAST_OF_UNDEFINED = 'undefined'.charCodeAt(8)
const LAST_OF_NULL = 'null'.charCodeAt(3)
const REMEMBERED_NAMES = 10_000
/** Longer texts are digested each time: remembering them would let callers fill the memory. */
const REMEMBERED_LENGTH = 512

/**
 * Names a subject for the store: `type:id`, with secrets and long ids replaced by their digest and IPv6
 * addresses by their /64.
 */
export type SubjectNamer = (subject: SubjectInput) => string

/** Creates the function that names subjects. Different callers always get different names. */
export function createSubjectNamer(options: SubjectOptions = {}): SubjectNamer {
  const secret = options.secret ?? DEFAULT_SECRET
  if (typeof secret !== 'string' || secret === '') {
    // Never shown: it may be a secret in a wrapper.
    const got = secret === '' ? 'an empty one' : `a value of type ${typeof secret}`
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
      field: 'subject.secret',
      expected: 'a non-empty string',
      got,
    })
  }
  const { secretTypes = [] } = options
  if (!Array.isArray(secretTypes) || secretTypes.some(type => typeof type !== 'string')) {
    throw invalidOption('subject.secretTypes', 'a list of subject types', secretTypes)
  }
  const ownSecretTypes = new Set(secretTypes.map(foldType))
  const isSecret = (type: string): boolean => ownSecretTypes.has(type) || looksSecret(type)
  /** Caches the names that took some work. */
  const names = new Map<string, string>()
  /**
   * The last type seen for each first letter that is in lower case and not secret: most requests have one of a
   * few types.
   */
  const plainPrefixes: (string | undefined)[] = new Array(128).fill(undefined)
  let mayWarn = options.secret === undefined
  let mayWarnOfNobody = true

  function digestOf(text: string, type: string): string {
    return `${type}:${DIGEST_MARK}${digest(secret, text)}`
  }

  /**
   * Clearing the whole cache is rare and needs no tracking of use; making a name again takes a few
   * microseconds.
   */
  function remember(text: string, name: string): string {
    if (text.length > REMEMBERED_LENGTH) return name
    if (names.size >= REMEMBERED_NAMES) names.clear()
    names.set(text, name)
    return name
  }

  function isOwn(text: string, colon: number): boolean {
    if (text.length - colon - 1 > MAX_ID_LENGTH) return false
    if (text.charCodeAt(colon + 1) === DIGEST_MARK_CODE || isWrittenForNothing(text, colon)) return false
    const prefix = plainPrefixes[text.charCodeAt(0)]
    if ((prefix?.length !== colon + 1 || !text.startsWith(prefix)) && !isPlainType(text, colon)) return false
    return colon !== IP.length || !text.startsWith(IP) || !text.includes(':', colon + 1)
  }

  function isPlainType(text: string, colon: number): boolean {
    const type = text.slice(0, colon)
    if (type !== foldType(type) || isSecret(type)) return false
    const first = type.charCodeAt(0)
    if (first < plainPrefixes.length && colon < MAX_ID_LENGTH) plainPrefixes[first] = `${type}:`
    return true
  }

  function nameOf(text: string, colon: number): string {
    const known = text.length > REMEMBERED_LENGTH ? undefined : names.get(text)
    if (known !== undefined) return known
    const type = foldType(text.slice(0, colon))
    const folded = type + text.slice(colon)
    if (isSecret(type) && mayWarn) warnOfDefault(type)
    if (mayWarnOfNobody && isWrittenForNothing(text, colon)) warnOfNobody(text.slice(colon + 1))
    const name = (type === IP ? ipName(text.slice(colon + 1)) : null) ?? readable(folded, colon)
    return remember(text, name ?? digestOf(folded, type))
  }

  /** Returns the text itself if it may be stored as it is. */
  function readable(text: string, colon: number): string | null {
    const id = text.length - colon - 1
    if (id > MAX_ID_LENGTH || text.charCodeAt(colon + 1) === DIGEST_MARK_CODE) return null
    return isSecret(text.slice(0, colon)) ? null : text
  }

  function warnOfDefault(type: string): void {
    mayWarn = false
    warn(options.onWarning, {
      code: 'WARN_HEADGATE_DEFAULT_SECRET',
      message: `subject.secret: not set, so ${show(type)} ids are hashed with a key that everybody knows, and anybody who can read the store can guess ids; set the same secret in every process (for the headgate command: --subject-secret-file or HEADGATE_SUBJECT_SECRET)`,
    })
  }

  function warnOfNobody(id: string): void {
    mayWarnOfNobody = false
    warn(options.onWarning, {
      code: 'WARN_HEADGATE_NAMES_NOBODY',
      message: `subject: the id is the text ${id}: callers without an id share its budget`,
    })
  }

  function nameSubject(subject: SubjectInput): string {
    const text = typeof subject === 'string' ? subject : subjectText(subject)
    const colon = text.indexOf(':')
    if (!isBetween(text, colon)) throw invalidSubject(subject)
    if (mayWarnOfNobody && typeof subject !== 'string') {
      const missing = missingOf(subject)
      if (missing !== undefined) warnOfNobody(missing)
    }
    return isOwn(text, colon) ? text : nameOf(text, colon)
  }

  return nameSubject
}

/** The commonest two, told by their last letter first: this is asked of every subject. */
function isWrittenForNothing(text: string, colon: number): boolean {
  const last = text.charCodeAt(text.length - 1)
  if (last === LAST_OF_UNDEFINED) return text.length - colon === 10 && text.endsWith(':undefined')
  return last === LAST_OF_NULL && text.length - colon === 5 && text.endsWith(':null')
}

/** Returns the id written for nothing among those of several subjects that `together` has made one. */
function missingOf({ type, id }: Subject): string | undefined {
  if (!type.includes('+')) return undefined
  return id.split('|').find(part => part === 'undefined' || part === 'null')
}

function warn(
  onWarning: SubjectOptions['onWarning'] = ({ code, message }) =>
    console.warn(`[headgate] ${code}: ${message}`),
  warning: SubjectWarning,
): void {
  try {
    onWarning(warning)
  } catch {
    // A failing warning handler must not fail the request.
  }
}

/** Whether there is text on both sides of the colon. */
function isBetween(text: string, colon: number): boolean {
  return colon > 0 && colon < text.length - 1
}

function subjectText(subject: Subject): string {
  if (typeof subject?.type !== 'string' || typeof subject.id !== 'string') throw invalidSubject(subject)
  if (subject.type.includes(':')) throw invalidSubject(subject)
  return `${subject.type}:${subject.id}`
}

/** Never shows the id, which may be a secret. */
function invalidSubject(subject: unknown): HeadgateError {
  const got = typeof subject === 'string' ? `a string of ${subject.length} characters` : show(subject)
  const expected = "'type:id' or { type, id } with both non-empty and no ':' in type"
  return new HeadgateError('ERR_HEADGATE_INVALID_SUBJECT', { field: 'subject', expected, got })
}

/** Returns the spelling in which a type is compared and stored: A to Z in lower case. */
export function foldType(type: string): string {
  return type.replace(/[A-Z]/g, letter => letter.toLowerCase())
}

/**
 * Returns the type by which rules know a subject's name, `type:id`: whoever has no address is held to the limits of
 * one.
 */
export function typeOf(name: string): string {
  if (name === ANONYMOUS) return 'ip'
  return name.slice(0, name.indexOf(':'))
}

/** The subject of all callers who name nobody and have no address. Rules treat it as an address. */
export const ANONYMOUS = 'anonymous:unknown' as const

/** The texts that JavaScript writes for a value that is missing or not meant to be written. */
const WRITTEN_FOR_NOTHING: ReadonlySet<string> = new Set(['undefined', 'null', 'NaN', '[object Object]'])

/**
 * Says why a value names nobody, such as what a missing id leaves behind (`user:`, `user:undefined`); null if it names
 * somebody. Never shows an id, which may be a secret.
 */
export function namesNobody(subject: unknown): string | null {
  if (typeof subject === 'string') {
    const colon = subject.indexOf(':')
    if (colon <= 0) return 'no type:id'
    return endsAsIds(subject) && colon < subject.length - 1 ? null : missingId(subject.slice(colon + 1))
  }
  if (typeof subject !== 'object' || subject === null) return `a value of type ${typeof subject}`
  const { type, id } = subject as { readonly type?: unknown; readonly id?: unknown }
  if (typeof type !== 'string' || type === '' || type.includes(':')) return 'no type'
  return typeof id === 'string' ? missingId(id) : `an id of type ${typeof id}`
}

/** Their last characters. */
const ENDS_OF_NOTHING = 'dlN]'

/** Whether the last character alone says that a text is neither blank nor written for nothing, as it mostly does. */
function endsAsIds(text: string): boolean {
  const last = text.charCodeAt(text.length - 1)
  return last > 32 && last < 127 && !ENDS_OF_NOTHING.includes(text.at(-1) as string)
}

function missingId(id: string): string | null {
  if (id.trim() === '') return 'an empty id'
  return WRITTEN_FOR_NOTHING.has(id) ? `the id ${id}` : null
}

// Names of IPv6 callers. A caller is the /64 of its address; whoever has one /64 can often get 256 of them, so the /56
// and /48 around it may have budgets of their own. Names spell out all four groups, as in `ip:2001:db8:0:1::/64`, so
// that the surrounding network is found by truncation.

const PREFIX = 'ip:'
/** The widest network that is charged together. Its name determines the slot of everything inside it. */
export const WIDEST_BITS = 48
/** The size of one caller's network. */
export const CALLER_BITS = 64
const WIDEST_GROUPS = WIDEST_BITS / 16
/** Contains no character that a key would have to encode. */
const NAME = /^ip:[0-9a-f:]+::\/(?:4[89]|5\d|6[0-4])$/
const NETWORK = /^([^/]+)\/(\d{2})$/

/**
 * Returns the name of an `ip` subject by its id; null if the id is neither an IPv6 address nor a network from
 * /48 to /64.
 */
function ipName(id: string): string | null {
  const [, text = id, length] = NETWORK.exec(id) ?? []
  const bits = length === undefined ? CALLER_BITS : Number(length)
  const address = bits < WIDEST_BITS || bits > CALLER_BITS ? null : parseAddress(text)
  if (address === null) return null
  if (isIPv4(address)) return length === undefined ? PREFIX + formatAddress(address) : null
  return networkName(address, bits)
}

/** Whether a name is that of an IPv6 caller, which wider networks surround. */
export function isIPv6Caller(name: string): boolean {
  return isIPv6Name(name) && name.endsWith(`/${CALLER_BITS}`)
}

/** Whether a name is that of an IPv6 network, and may therefore differ from what the caller wrote. */
function isIPv6Name(name: string): boolean {
  // Cheap tests first: most subjects differ in the first letter, and IPv4 addresses in the third-last
  // character.
  return name.charCodeAt(0) === 105 && name.charCodeAt(name.length - 3) === 47 && NAME.test(name)
}

/** Returns the name of the network of `bits` around an IPv6 caller. */
export function networkAround(caller: string, bits: number): string {
  const groups = groupsOf(caller).map(group => Number.parseInt(group, 16))
  return networkName([...groups, 0, 0, 0, 0], bits)
}

/**
 * Returns the name that determines the slot of a subject's keys: for IPv6 the /48, so that a caller and the
 * networks around it share a slot.
 */
export function slotSubject(name: string): string {
  if (!isIPv6Name(name)) return name
  return `${PREFIX}${groupsOf(name).slice(0, WIDEST_GROUPS).join(':')}::/${WIDEST_BITS}`
}

function groupsOf(name: string): string[] {
  return name.slice(PREFIX.length, name.indexOf('::/')).split(':')
}

function networkName(address: Address, bits: number): string {
  const groups = networkOf(address, bits)
    .slice(0, Math.ceil(bits / 16))
    .map(group => group.toString(16))
  return `${PREFIX}${groups.join(':')}::/${bits}`
}
