/**
 * Finds the client a request comes from. Anybody can write `X-Forwarded-For` and `Forwarded`, so only the
 * entries that your own proxies added can be believed. Those are at the right end: reading starts there and
 * stops at the first address that is not one of your proxies.
 */
import { invalidOption } from '../errors/headgate-error.js'
import { wholeNumber } from '../errors/whole-number.js'
import { type Address, formatAddress, isIPv4, parseAddress } from './address.js'
import { isWithin, networkOf, parseNetwork } from './network.js'

/** The header in which proxies name the client. */
export type ForwardedHeader = 'x-forwarded-for' | 'forwarded'

export interface ClientAddressOptions {
  /** Default: no proxy is trusted, and the peer of the connection is the client. */
  readonly trustedProxies?: TrustedProxies
  /**
   * The header your proxies write. The other one is ignored, because any client could have sent it. Default
   * `x-forwarded-for`.
   */
  readonly forwardedHeader?: ForwardedHeader
}

/** The lines of a header as a server passes them on. */
type HeaderLines = string | readonly string[] | null | undefined

export interface ClientAddress {
  /**
   * Returns the client of a request, given the peer of its connection and the lines of `header`. Falls back to
   * the peer where the header cannot be read; null if the peer is not an address.
   */
  (peer: string | undefined, forwarded: HeaderLines): string | null
  /**
   * Returns the addresses from the client to the peer, in the order of the header. Includes only entries that a
   * trusted proxy added.
   */
  path(peer: string | undefined, forwarded: HeaderLines): readonly string[] | null
  /** The header to pass in. */
  readonly header: ForwardedHeader
  /** Whether any proxy is trusted. If not, the header need not be passed in. */
  readonly readsHeader: boolean
  /** Whether a peer is a trusted proxy. */
  trusts(peer: string | undefined): boolean
}

const READERS: Readonly<Record<ForwardedHeader, (entry: string) => string | null>> = {
  'x-forwarded-for': entry => entry,
  forwarded: forwardedFor,
}

/** Creates the function that finds the client of a request. */
export function createClientAddress(options: ClientAddressOptions = {}): ClientAddress {
  return clientAddressBy(parseTrustedProxies(options.trustedProxies ?? []), options.forwardedHeader)
}

/** The same for proxies that somebody else has told apart. */
export function clientAddressBy(
  isTrusted: IsTrusted | null,
  forwardedHeader: ForwardedHeader = 'x-forwarded-for',
): ClientAddress {
  if (!Object.hasOwn(READERS, forwardedHeader)) {
    const expected = Object.keys(READERS).join(' or ')
    throw invalidOption('forwardedHeader', expected, forwardedHeader)
  }
  const read = READERS[forwardedHeader]

  const path = (peerText: string | undefined, forwarded: HeaderLines): Address[] | null => {
    const peer = parseAddress(peerText ?? '')
    if (peer === null) return null
    const passed = [peer]
    if (isTrusted === null || !isTrusted(peer, 0)) return passed
    for (const entry of entriesFromTheRight(forwarded)) {
      const address = parseNode(read(entry))
      if (address === null || passed.length > MAX_PROXIES) return [peer]
      passed.unshift(address)
      if (!isTrusted(address, passed.length - 1)) break
    }
    return passed
  }
  const clientAddress = (peer: string | undefined, forwarded: HeaderLines): string | null => {
    const client = path(peer, forwarded)?.[0]
    return client === undefined ? null : formatAddress(client)
  }
  const trusts = (peerText: string | undefined): boolean => {
    const peer = parseAddress(peerText ?? '')
    return peer !== null && (isTrusted?.(peer, 0) ?? false)
  }
  return Object.assign(clientAddress, {
    header: forwardedHeader,
    readsHeader: isTrusted !== null,
    trusts,
    path: (peer: string | undefined, forwarded: HeaderLines) =>
      path(peer, forwarded)?.map(address => formatAddress(address)) ?? null,
  })
}

/**
 * Returns an address in its shortest spelling, without its zone, and IPv4-mapped IPv6 as IPv4; null if the text
 * is not an address.
 */
export function peerAddress(text: string | undefined): string | null {
  const address = parseAddress(text ?? '')
  return address === null ? null : formatAddress(address)
}

/**
 * Returns the network that shares one budget with an address: the address itself for IPv4, its /64 for IPv6,
 * because every household and rented server has at least a /64. Null if the text is not an address.
 */
export function limitedAddress(text: string | null | undefined): string | null {
  const address = parseAddress(text ?? '')
  if (address === null || isIPv4(address)) return address && formatAddress(address)
  return `${formatAddress(networkOf(address, 64))}/64`
}

/**
 * Yields lazily, because the left end may be long and is rarely needed. Several lines count as one list, in
 * their order.
 */
function* entriesFromTheRight(lines: HeaderLines): Generator<string> {
  const all = typeof lines === 'string' ? [lines] : (lines ?? [])
  for (let index = all.length - 1; index >= 0; index--) {
    const line = all[index] as string
    for (let end = line.length; end >= 0; ) {
      const comma = end === 0 ? -1 : line.lastIndexOf(',', end - 1)
      const entry = line.slice(comma + 1, end).trim()
      if (entry !== '') yield entry
      end = comma
    }
  }
}

/**
 * Accepts `1.2.3.4`, `1.2.3.4:80`, `2001:db8::1`, `[2001:db8::1]` and `[2001:db8::1]:80`; null for anything
 * else.
 */
function parseNode(node: string | null): Address | null {
  if (node === null) return null
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(node)
  if (bracketed !== null) return bracketed[1]?.includes(':') ? parseAddress(bracketed[1]) : null
  const withPort = /^([\d.]+):\d{1,5}$/.exec(node)
  return parseAddress(withPort?.[1] ?? node)
}

const PAIR = /\s*([\w!#$%&'*+.^`|~-]+)=(?:([^\s";,]+)|"((?:[^"\\]|\\.)*)")\s*(;|$)/y

/**
 * Returns the node that an element of `Forwarded` (RFC 7239) names, such as `for="[2001:db8::9]:4711";proto=https`,
 * spelt as in `X-Forwarded-For`; null if it names none. An element that is not entirely well-formed is ignored, because
 * the client chooses the host name in it, which must not pass for another `for`.
 */
function forwardedFor(element: string): string | null {
  PAIR.lastIndex = 0
  let node: string | null = null
  while (PAIR.lastIndex < element.length) {
    const pair = PAIR.exec(element)
    if (pair === null) return null
    const [, name = '', plain, quoted] = pair
    if (name.toLowerCase() !== 'for') continue
    if (node !== null) return null
    node = plain ?? (quoted as string)
  }
  return node
}

/**
 * The proxies whose word about a client's address is taken: a list of addresses and networks; the number of
 * proxies a request passes through; or `'everybody'`, which lets any caller choose its address unless a proxy
 * in front overwrites the header.
 */
export type TrustedProxies = readonly string[] | 'everybody' | { readonly hops: number }

/** Whether to believe the entry written by `address`, which is `passed` proxies away from this process. */
export type IsTrusted = (address: Address, passed: number) => boolean

const FORMS = 'a list of addresses and networks, everybody, or { hops }'
/** A longer chain of your own proxies is a loop or an attack. */
export const MAX_PROXIES = 32

/**
 * Whom the setting of a framework trusts: taken over where `trustedProxies` is not set. `'everybody'`, which believes the
 * client's own words, is not.
 */
export type FrameworkTrust = IsTrusted | 'everybody'

/** Nobody has proxies at all of these. */
const STRANGERS = [
  ['1.1.1.1', '8.8.8.8', '9.9.9.9'],
  ['2606:4700:4700::1111', '2001:4860:4860::8888', '2620:fe::fe'],
]

/** Takes over a framework's function that tells proxies by their address and how many others are in front of them. */
export function trustByFunction(isProxy: (address: string, passed: number) => boolean): FrameworkTrust {
  const trustsStrangers = STRANGERS.some(some => some.every(address => isProxy(address, MAX_PROXIES)))
  return trustsStrangers ? 'everybody' : (address, passed) => isProxy(formatAddress(address), passed)
}

/** Takes over the number of proxies that a framework counts from the right; none if it is 0. */
export function trustByHops(hops: number): FrameworkTrust {
  return (_, passed) => passed < hops
}

/** Creates the function that says which peers are trusted; null if none is. */
export function parseTrustedProxies(value: unknown): IsTrusted | null {
  if (value === 'everybody') return () => true
  if (Array.isArray(value)) {
    const networks = value.map(parseNetwork)
    return networks.length === 0 ? null : address => networks.some(network => isWithin(address, network))
  }
  const hops = hopsOf(value)
  return (_address, passed) => passed < hops
}

function hopsOf(value: unknown): number {
  if (typeof value !== 'object' || value === null || !('hops' in value)) throw rejection('', FORMS, value)
  const other = Object.keys(value).find(key => key !== 'hops')
  if (other !== undefined) throw rejection(`.${other}`, 'hops alone', other)
  const { hops } = value
  return wholeNumber(hops, 'trustedProxies.hops', 1, MAX_PROXIES)
}

function rejection(below: string, expected: string, got: unknown): Error {
  return invalidOption(`trustedProxies${below}`, expected, got)
}
