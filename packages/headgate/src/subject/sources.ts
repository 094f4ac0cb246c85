/** The built-in sources. A mere claim in a request identifies nobody unless the options say so. */
import { invalidOption } from '../errors/headgate-error.js'
import { type Address, parseAddress } from './address.js'
import {
  type ClientAddress,
  type ClientAddressOptions,
  clientAddressBy,
  createClientAddress,
  type IsTrusted,
  limitedAddress,
  parseTrustedProxies,
} from './client-address.js'
import { digest } from './digest.js'
import type { HttpRequest } from './http-request.js'
import { percentDecoded } from './percent-decoding.js'
import { PER_ADDRESS } from './source-config.js'
import { ANONYMOUS, type SubjectInput } from './subject.js'

/** The peers whose header is trusted: addresses and networks of your own proxies, or `'everybody'`. */
export type TrustedPeers = readonly string[] | 'everybody'

/** Finds the owner of a secret; null for an unknown secret. */
export type KeyLookup = (
  secret: string,
  request: HttpRequest,
) => KeyOwner | null | undefined | Promise<KeyOwner | null | undefined>

export interface KeyOwner {
  /**
   * The owner of the key. If left out, the secret itself is the subject, and leaves the process only as a hash.
   */
  readonly subject?: Identified['subject']
  readonly tier?: string
}

export interface SecretOptions {
  /** Looks up whether a secret is one of yours. Without it, `unverified: true` is required. */
  readonly lookUp?: KeyLookup
  /**
   * Takes every value for a caller of its own. A client can invent values, so they are charged to its address, too:
   * see `perAddress`.
   */
  readonly unverified?: boolean
  readonly tier?: string
  readonly perAddress?: PerAddressTimes
}

/**
 * How many times the limits of one caller all callers from one address have together, if anybody can make them up.
 * Default 10. `off`: you verify them elsewhere.
 */
export type PerAddressTimes = number | 'off'

const MAX_PER_ADDRESS = 65_536

export interface ApiKeyOptions extends SecretOptions {
  /** Default `x-api-key`. */
  readonly header?: string
  /** The word before the key, such as `Bearer`. */
  readonly scheme?: string
}

export interface SessionOptions extends SecretOptions {
  readonly cookie: string
}

export interface HeaderSourceOptions {
  readonly header: string
  /** The peers to believe: the connection must come from one of these. */
  readonly from: TrustedPeers
  readonly tier?: string
  /** For `from: 'everybody'`. */
  readonly perAddress?: PerAddressTimes
}

/** `from` is compared with the client's address, as trusted proxies tell it: clients behind them are not yours. */
export interface InternalOptions extends HeaderSourceOptions, ClientAddressOptions {}

export interface FingerprintOptions extends ClientAddressOptions {
  /** Headers that stay the same for one client. Default `user-agent`, `accept-language`. */
  readonly headers?: readonly string[]
  readonly perAddress?: PerAddressTimes
}

const HEADER = /^[\w!#$%&'*+.^`|~-]+$/
const FINGERPRINT_KEY = 'headgate.fingerprint'

/** A source that always finds a subject, synchronously. */
export interface AddressSource extends SubjectSource {
  readonly isAddress: true
  find(request: HttpRequest): { readonly subject: string; readonly tier?: string | undefined }
}

/**
 * Identifies callers by their address. Without `trustedProxies`, it believes the proxies that the framework's own setting
 * trusts. Requests whose connection is closed or has no address share one budget.
 */
export function ip(options: ClientAddressOptions & { readonly tier?: string } = {}): AddressSource {
  const { tier, trustedProxies, forwardedHeader } = options
  const nameByOwn = createNameClient(createClientAddress(options))
  // One for each app that has such a setting.
  const namesByTrust = new WeakMap<IsTrusted, NameClient>()

  function nameByTrust(trust: IsTrusted): NameClient {
    let nameClient = namesByTrust.get(trust)
    if (nameClient === undefined) {
      nameClient = createNameClient(clientAddressBy(trust, forwardedHeader))
      namesByTrust.set(trust, nameClient)
    }
    return nameClient
  }
  return {
    types: ['ip'],
    isAddress: true,
    find(request) {
      const { peer } = request
      if (peer === undefined) return { subject: ANONYMOUS, tier }
      const trust = trustedProxies === undefined ? request.trust : undefined
      const nameClient = typeof trust === 'function' ? nameByTrust(trust) : nameByOwn
      return { subject: nameClient(peer, request), tier }
    },
  }
}

/** Identifies callers by an API key in a header. */
export function apiKey(options: ApiKeyOptions): SubjectSource {
  const { header = 'x-api-key', scheme } = options ?? {}
  rejectHeader('header', header)
  const schemeWord = scheme?.toLowerCase()
  return secretSource('apikey', options, request => {
    const words = (request.header(header.toLowerCase()) ?? '').split(/[\s,]+/).filter(word => word !== '')
    if (schemeWord === undefined) return words
    const keys = words.filter(word => word.toLowerCase() !== schemeWord)
    return keys.length < words.length ? keys : []
  })
}

/** Identifies callers by a session id in a cookie. */
export function session(options: SessionOptions): SubjectSource {
  const { cookie } = options ?? {}
  if (typeof cookie !== 'string' || !HEADER.test(cookie))
    throw rejection('cookie', 'the name of a cookie', cookie)
  return secretSource('session', options, request => cookieValues(request.header('cookie') ?? '', cookie))
}

/** Identifies the user whom your own proxy authenticated and names in a header. */
export function user(options: HeaderSourceOptions): SubjectSource {
  return headerSource('user', options, ({ peer }) => parseAddress(peer ?? ''))
}

/** Identifies the organisation that your own proxy names in a header. */
export function tenant(options: HeaderSourceOptions): SubjectSource {
  return headerSource('tenant', options, ({ peer }) => parseAddress(peer ?? ''))
}

/**
 * Identifies one of your own services, which names itself in a header; believed by its address, even behind a trusted
 * proxy.
 */
export function internal(options: InternalOptions): SubjectSource {
  const { trustedProxies, forwardedHeader } = options ?? {}
  const clientAddress = createClientAddress({
    ...(trustedProxies && { trustedProxies }),
    ...(forwardedHeader && { forwardedHeader }),
  })
  return headerSource('internal', options, request => {
    const trust = trustedProxies === undefined ? request.trust : undefined
    const ofTrust = typeof trust === 'function' ? clientAddressBy(trust, forwardedHeader) : clientAddress
    return parseAddress(ofTrust(request.peer, request.header(ofTrust.header)) ?? '')
  })
}

/**
 * Identifies callers by address and headers together, to tell apart those behind one address. A client chooses
 * its headers, so they are charged to the address, too.
 */
export function fingerprint(options: FingerprintOptions = {}): SubjectSource {
  const { headers = ['user-agent', 'accept-language'], perAddress, ...addressOptions } = options
  const times = timesOf(perAddress)
  if (!Array.isArray(headers) || headers.length === 0)
    throw rejection('headers', 'a list of headers', headers)
  for (const header of headers) rejectHeader('headers', header)
  const names = headers.map(header => header.toLowerCase())
  const address = ip(addressOptions)
  return {
    types: ['fingerprint'],
    find(request) {
      const { subject } = address.find(request)
      const parts = [subject, ...names.map(name => request.header(name) ?? null)]
      return { subject: `fingerprint:${digest(FINGERPRINT_KEY, JSON.stringify(parts))}`, perAddress: times }
    },
  }
}

/**
 * Identifies callers by a function of your own, which returns null for an unknown caller. `types` lists the
 * subject types it may return, if known.
 */
export function custom(
  find: (request: HttpRequest) => Identified | null | Promise<Identified | null>,
  types: readonly string[] | null = null,
): SubjectSource {
  if (typeof find !== 'function') throw rejection('find', 'a function of the request', find)
  return { types, find }
}

type Found = ReturnType<SubjectSource['find']>

function secretSource(
  type: string,
  { lookUp, unverified, tier, perAddress }: SecretOptions,
  read: (request: HttpRequest) => readonly string[],
): SubjectSource {
  if (lookUp !== undefined && typeof lookUp !== 'function') throw rejection('lookUp', 'a function', lookUp)
  if ((lookUp === undefined) !== (unverified === true)) {
    const expected =
      'either a lookUp, or unverified: true, which gives every made-up value a budget of its own'
    throw rejection(type, expected, lookUp === undefined ? 'neither' : 'both')
  }
  if (lookUp !== undefined && perAddress !== undefined)
    throw rejection('perAddress', 'none beside a lookUp, which verifies each value', perAddress)
  const times = timesOf(perAddress)
  function lookUpFirst([secret, ...others]: readonly string[], request: HttpRequest): Found {
    if (lookUp === undefined || secret === undefined) return null
    const toFound = (known: KeyOwner | null | undefined): Found =>
      known === null || known === undefined
        ? lookUpFirst(others, request)
        : { subject: known.subject ?? `${type}:${secret}`, tier: known.tier ?? tier }
    const known = lookUp(secret, request)
    return isPromise(known) ? known.then(toFound) : toFound(known)
  }
  return {
    types: lookUp === undefined ? [type] : null,
    find(request) {
      const secrets = read(request)
      if (lookUp !== undefined) return lookUpFirst(firstAndLast(secrets), request)
      const [secret] = secrets
      // We cannot tell which of several counts, and an invented one would be a new budget.
      return secret === undefined || secrets.length > 1
        ? null
        : { subject: `${type}:${secret}`, tier, perAddress: times }
    },
  }
}

function headerSource(
  type: string,
  options: HeaderSourceOptions,
  senderOf: (request: HttpRequest) => Address | null,
): SubjectSource {
  const { header, from, tier, perAddress } = options ?? {}
  rejectHeader('header', header)
  if (from !== 'everybody' && !Array.isArray(from)) {
    throw rejection('from', 'a list of addresses and networks, or everybody', from)
  }
  const isBelieved = parseTrustedProxies(from)
  if (isBelieved === null) throw rejection('from', 'at least one address or network', from)
  if (from !== 'everybody' && perAddress !== undefined)
    throw rejection('perAddress', 'from: everybody beside it: your own networks are trusted', perAddress)
  const times = from === 'everybody' ? timesOf(perAddress) : undefined
  const name = header.toLowerCase()
  return {
    types: [type],
    find(request) {
      const sender = from === 'everybody' ? null : senderOf(request)
      if (from !== 'everybody' && (sender === null || !isBelieved(sender, 0))) return null
      // Two lines are joined by a comma, and one of them may be the client's own that the proxy left in.
      const id = request.header(name)?.trim() ?? ''
      return id === '' || id.includes(',') ? null : { subject: { type, id }, tier, perAddress: times }
    },
  }
}

/** Undefined: verified elsewhere. */
function timesOf(perAddress: PerAddressTimes = PER_ADDRESS): number | undefined {
  if (perAddress === 'off') return undefined
  if (Number.isInteger(perAddress) && perAddress >= 1 && perAddress <= MAX_PER_ADDRESS) return perAddress
  throw rejection('perAddress', `off, or a whole number from 1 to ${MAX_PER_ADDRESS}`, perAddress)
}

function rejectHeader(field: string, header: unknown): void {
  if (typeof header !== 'string' || !HEADER.test(header))
    throw rejection(field, 'the name of a header', header)
}

function rejection(field: string, expected: string, got: unknown): Error {
  return invalidOption(field, expected, got)
}

const REMEMBERED = 10_000
/** Longer texts are parsed each time: remembering them would let callers fill the memory. */
const REMEMBERED_LENGTH = 256

/** Names a client by the peer of its connection and the header a proxy wrote. */
type NameClient = (peer: string, request: HttpRequest) => string

/** Caches the names of clients: they come back, and parsing an address takes ten times as long as deciding. */
function createNameClient(clientAddress: ClientAddress): NameClient {
  const names = new Map<string, string>()
  return (peer, request) => {
    const forwarded = clientAddress.readsHeader ? request.header(clientAddress.header) : undefined
    // Unambiguous, because no address contains a space.
    const read = forwarded === undefined ? peer : `${peer} ${forwarded}`
    const known = names.get(read)
    if (known !== undefined) return known
    const address = limitedAddress(clientAddress(peer, forwarded))
    const name = address === null ? ANONYMOUS : `ip:${address}`
    if (read.length > REMEMBERED_LENGTH) return name
    // Clearing the whole cache is rare, and needs no tracking of use.
    if (names.size >= REMEMBERED) names.clear()
    names.set(read, name)
    return name
  }
}

/** A way to find subjects: by address, header, cookie, verified token, or a function of your own. */
export interface SubjectSource {
  /** The subject types it may find; null if only its function knows. */
  readonly types: readonly string[] | null
  /** Finds who is asking; null if this source cannot tell. Never trusts an unverified claim. */
  find(request: HttpRequest): Identified | null | Promise<Identified | null>
  /** Settles when it has what it needs, such as a package; rejects if it cannot get it. */
  ready?(): Promise<void>
}

/** The subjects that a source found. */
export interface Identified {
  /** One subject, or several from the most specific to the least. */
  readonly subject: SubjectInput | readonly SubjectInput[]
  /** The caller's tier, if the source knows it. */
  readonly tier?: string | undefined
  /**
   * For subjects that anybody can make up: all of them together get this many times one subject's limits from one
   * address. Left out: the source has verified the subject.
   */
  readonly perAddress?: number | undefined
}

/** Whether a value has to be awaited. Any thenable counts, as for `await`. */
export function isPromise<T>(value: T | Promise<T>): value is Promise<T> {
  // By its type first: most values are none, and looking for a property of a text takes longer.
  if (typeof value !== 'object' && typeof value !== 'function') return false
  return typeof (value as Promise<T> | null)?.then === 'function'
}

/** Returns every value of a cookie in a `Cookie` header as servers read it: unquoted and percent-decoded. */
export function cookieValues(header: string, name: string): readonly string[] {
  const values: string[] = []
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals < 0 || pair.slice(0, equals).trim() !== name) continue
    const value = pair
      .slice(equals + 1)
      .trim()
      .replace(/^"(.*)"$/, '$1')
    // Within a value, spaces and commas must be encoded; a bare one separates several values.
    if (value === '' || /[\s,]/.test(value)) continue
    // Without decoding, one session would have a name for every way of encoding it.
    values.push(percentDecoded(value) ?? value)
  }
  return values
}

/**
 * Returns the first and the last of several values, each once. A server that receives several uses one of the
 * two, and we cannot know which. Credentials are therefore tried in both places, so that adding junk beside one
 * does not turn a known caller into an unknown one.
 */
export function firstAndLast(values: readonly string[]): readonly string[] {
  const [first] = values
  const last = values.at(-1)
  if (first === undefined || last === undefined) return []
  return first === last ? [first] : [first, last]
}
