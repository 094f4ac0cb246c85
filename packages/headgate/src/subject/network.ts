import { type HeadgateError, invalidOption } from '../errors/headgate-error.js'
import { type Address, formatAddress, isIPv4, parseAddress } from './address.js'

/** All addresses that share their first `bits` bits. */
export interface Network {
  readonly address: Address
  /** Out of 128; IPv4 addresses start at bit 96. */
  readonly bits: number
}

const FORMS = 'an address or a network, such as 10.0.0.5, 10.0.0.0/8 or fd00::/8'
const IPV4_BITS = 96
const ALL_IPV4: Network = { address: [0, 0, 0, 0, 0, 0xffff, 0, 0], bits: IPV4_BITS }
/** Nobody outside can have an address in these, so they may be trusted as a whole. */
const LOCAL: readonly Network[] = [
  { address: [0xfc00, 0, 0, 0, 0, 0, 0, 0], bits: 7 },
  { address: [0xfe80, 0, 0, 0, 0, 0, 0, 0], bits: 10 },
]
/** The widest network a single owner has. Trusting anything wider is a mistake, or lets everybody in. */
const WIDEST = { ipv4: 8, ipv6: 16 }

const ALOUD = '(to trust everybody, write: trustedProxies: everybody)'

/**
 * Parses a network to trust. Rejects networks that include strangers, and spellings that programs read in two
 * ways.
 */
export function parseNetwork(value: unknown): Network {
  if (typeof value !== 'string') throw rejection(FORMS, value)
  const [text = '', length, ...rest] = value.split('/')
  const address = text.includes('%') ? null : parseAddress(text)
  if (address === null || rest.length > 0) throw rejection(FORMS, value)
  if (length === undefined) return { address, bits: 128 }
  const family = isIPv4(address) ? 'ipv4' : 'ipv6'
  // It is ambiguous whether /8 counts from the first bit or from the start of the IPv4 address; libraries have
  // trusted the whole world over it.
  if (family === 'ipv4' && text.includes(':')) throw rejection('an IPv4 network written with dots', value)
  const longest = family === 'ipv4' ? 32 : 128
  if (!/^\d{1,3}$/.test(length) || Number(length) > longest) throw rejection(FORMS, value)
  const bits = Number(length) + (family === 'ipv4' ? IPV4_BITS : 0)
  const first = networkOf(address, bits)
  const network = { address: first, bits }
  if (family === 'ipv6' && holds(network, ALL_IPV4)) {
    throw rejection(`a network without ::ffff:0:0/96, which is all of IPv4 ${ALOUD}`, value)
  }
  if (Number(length) < WIDEST[family] && !isLocal(network)) {
    throw rejection(
      `a network of at least /${WIDEST[family]}, since a wider one holds strangers ${ALOUD}`,
      value,
    )
  }
  if (!first.every((group, index) => group === address[index])) {
    throw rejection(`${formatAddress(first)}/${length}, the first address of that network`, value)
  }
  return network
}

/** Whether a network contains an address. */
export function isWithin(address: Address, network: Network): boolean {
  for (let index = 0; index < 8; index++) {
    const mask = maskOf(index, network.bits)
    if (mask === 0) return true
    if (((address[index] as number) & mask) !== network.address[index]) return false
  }
  return true
}

/** Returns the first address of the network of `bits` around an address. */
export function networkOf(address: Address, bits: number): Address {
  return address.map((group, index) => group & maskOf(index, bits))
}

/** Whether two networks have an address in common. */
export function overlaps(one: Network, other: Network): boolean {
  return holds(one, other) || holds(other, one)
}

function isLocal(network: Network): boolean {
  return LOCAL.some(local => holds(local, network))
}

function holds(network: Network, other: Network): boolean {
  return network.bits <= other.bits && isWithin(other.address, network)
}

/** Returns the mask of the bits in one group that belong to the first `bits` of an address. */
function maskOf(index: number, bits: number): number {
  const own = Math.min(16, Math.max(0, bits - index * 16))
  return (0xffff << (16 - own)) & 0xffff
}

function rejection(expected: string, got: unknown): HeadgateError {
  return invalidOption('trustedProxies', expected, got)
}
