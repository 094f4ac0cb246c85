/**
 * Who a request comes from. `X-Forwarded-For` is what anybody may write; only an entry that a proxy of one's own has
 * added says something. Such entries are at the right end, so that is where reading begins, and it ends at the first
 * address that is no proxy of one's own.
 */
import { unexpected } from '../errors.js'
import { type Address, formatAddress, isIPv4, parseAddress } from './address.js'
import { isWithin, type Network, parseNetwork } from './network.js'

export interface ClientAddressOptions {
  /** Addresses and networks of proxies whose word is taken. Left out: nobody's. */
  readonly trustedProxies?: readonly string[]
}

/** The lines of a header as a server hands them out. */
type HeaderLines = string | readonly string[] | null | undefined

/** A longer chain of one's own proxies is a loop or an attack; nothing it says is believed. */
const MAX_PROXIES = 32

/**
 * Makes the function that says which client a request comes from, given the peer of its connection and its
 * `X-Forwarded-For`. Null if the peer is no address. What cannot be read is the peer's doing, and the peer is taken.
 */
export function createClientAddress(
  options: ClientAddressOptions = {},
): (peer: string | undefined, forwardedFor: HeaderLines) => string | null {
  const { trustedProxies = [] } = options
  if (!Array.isArray(trustedProxies)) {
    throw unexpected(
      'ERR_HEADGATE_INVALID_OPTION',
      'trustedProxies',
      'a list of addresses and networks',
      trustedProxies,
    )
  }
  const networks: readonly Network[] = trustedProxies.map(parseNetwork)
  const isTrusted = (address: Address) => networks.some(network => isWithin(address, network))

  return (peerText, forwardedFor) => {
    const peer = parseAddress(peerText ?? '')
    if (peer === null) return null
    if (networks.length === 0 || !isTrusted(peer)) return formatAddress(peer)
    let client = peer
    let proxies = 0
    for (const entry of entriesFromTheRight(forwardedFor)) {
      const address = parseEntry(entry)
      if (address === null || ++proxies > MAX_PROXIES) return formatAddress(peer)
      client = address
      if (!isTrusted(address)) break
    }
    return formatAddress(client)
  }
}

/** An address in its shortest spelling, without zone; IPv4 written as IPv6 is IPv4. Null if it is none. */
export function peerAddress(text: string | undefined): string | null {
  const address = parseAddress(text ?? '')
  return address === null ? null : formatAddress(address)
}

/**
 * What is limited together with an address: itself, or its /64 for IPv6, of which a household or a rented server has
 * one at least. Null if it is none.
 */
export function limitedAddress(text: string | null | undefined): string | null {
  const address = parseAddress(text ?? '')
  if (address === null || isIPv4(address)) return address && formatAddress(address)
  return `${formatAddress(address.map((group, index) => (index < 4 ? group : 0)))}/64`
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
function parseEntry(entry: string): Address | null {
  const bracketed = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(entry)
  if (bracketed !== null) return bracketed[1]?.includes(':') ? parseAddress(bracketed[1]) : null
  const withPort = /^([\d.]+):\d{1,5}$/.exec(entry)
  return parseAddress(withPort?.[1] ?? entry)
}
