/**
 * Finds the client a request comes from. `X-Forwarded-For` and `Forwarded` are what anybody may write; only an entry
 * that a proxy of one's own has added says something. Such entries are at the right end, so that is where reading
 * begins, and it ends at the first address that is no proxy of one's own.
 */
import { unexpected } from '../errors/headgate-error.js'
import { type Address, formatAddress, isIPv4, parseAddress } from './address.js'
import { forwardedFor } from './forwarded.js'
import { networkOf } from './network.js'
import { MAX_PROXIES, parseTrustedProxies, type TrustedProxies } from './trusted-proxies.js'

/** The header in which proxies say whom they got a request from. */
export type ForwardedHeader = 'x-forwarded-for' | 'forwarded'

export interface ClientAddressOptions {
  /** Left out: nobody is believed, and the peer of the connection is the client. */
  readonly trustedProxies?: TrustedProxies
  /** The header the proxies write; the other one is a stranger's and is not read. Default `x-forwarded-for`. */
  readonly forwardedHeader?: ForwardedHeader
}

/** The lines of a header as a server hands them out. */
type HeaderLines = string | readonly string[] | null | undefined

export interface ClientAddress {
  /**
   * The client of a request, given the peer of its connection and the lines of `header`. Null if the peer is no
   * address. Where the header cannot be read, the peer is taken.
   */
  (peer: string | undefined, forwarded: HeaderLines): string | null
  /**
   * The same with the proxies it came through: addresses from the client to the peer, in the order of the header. Only
   * entries that a trusted proxy has added are among them.
   */
  path(peer: string | undefined, forwarded: HeaderLines): readonly string[] | null
  /** The header to hand over. */
  readonly header: ForwardedHeader
  /** Whether there is anybody whose word is taken; if not, there is no need to hand it over. */
  readonly readsHeader: boolean
  /** Whether a peer is one of the proxies whose word is taken. */
  trusts(peer: string | undefined): boolean
}

const READERS: Readonly<Record<ForwardedHeader, (entry: string) => string | null>> = {
  'x-forwarded-for': entry => entry,
  forwarded: forwardedFor,
}

/** Makes the function that says which client a request comes from. */
export function createClientAddress(options: ClientAddressOptions = {}): ClientAddress {
  const isTrusted = parseTrustedProxies(options.trustedProxies ?? [])
  const { forwardedHeader = 'x-forwarded-for' } = options
  if (!Object.hasOwn(READERS, forwardedHeader)) {
    const expected = Object.keys(READERS).join(' or ')
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'forwardedHeader', expected, forwardedHeader)
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

/** An address in its shortest spelling, without zone; IPv4 written as IPv6 is IPv4. Null if it is none. */
export function peerAddress(text: string | undefined): string | null {
  const address = parseAddress(text ?? '')
  return address === null ? null : formatAddress(address)
}

/**
 * The network that is limited together with an address: itself, or its /64 for IPv6, of which a household or a rented
 * server has one at least. Null if the text is no address.
 */
export function limitedAddress(text: string | null | undefined): string | null {
  const address = parseAddress(text ?? '')
  if (address === null || isIPv4(address)) return address && formatAddress(address)
  return `${formatAddress(networkOf(address, 64))}/64`
}

/** One at a time: the left end may be long, and nobody needs it. Lines are one list, in their order. */
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

/** `1.2.3.4`, `1.2.3.4:80`, `2001:db8::1`, `[2001:db8::1]` or `[2001:db8::1]:80`; null for anything else. */
function parseNode(node: string | null): Address | null {
  if (node === null) return null
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(node)
  if (bracketed !== null) return bracketed[1]?.includes(':') ? parseAddress(bracketed[1]) : null
  const withPort = /^([\d.]+):\d{1,5}$/.exec(node)
  return parseAddress(withPort?.[1] ?? node)
}
