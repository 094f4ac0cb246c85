import { type HeadgateError, unexpected } from '../errors/headgate-error.js'
import { type Address, formatAddress, isIPv4, parseAddress } from './address.js'

/** The addresses that begin with the same bits. */
export interface Network {
  readonly address: Address
  /** Of 128; those of IPv4 begin at 96. */
  readonly bits: number
}

const FORMS = 'an address or a network, such as 10.0.0.5, 10.0.0.0/8 or fd00::/8'
const IPV4_BITS = 96
const ALL_IPV4: Network = { address: [0, 0, 0, 0, 0, 0xffff, 0, 0], bits: IPV4_BITS }
/** Nobody outside can have an address in these, so they may be trusted whole. */
const LOCAL: readonly Network[] = [
  { address: [0xfc00, 0, 0, 0, 0, 0, 0, 0], bits: 7 },
  { address: [0xfe80, 0, 0, 0, 0, 0, 0, 0], bits: 10 },
]
/** The widest network one owner has: anything wider is a mistake or an open door. */
const WIDEST = { ipv4: 8, ipv6: 16 }

const ALOUD = '(to trust everybody, write: trustedProxies: everybody)'

/** Reads a network to trust. Refuses one that holds strangers, and one that programs read in two ways. */
export function parseNetwork(value: unknown): Network {
  if (typeof value !== 'string') throw refusal(FORMS, value)
  const [text = '', length, ...rest] = value.split('/')
  const address = text.includes('%') ? null : parseAddress(text)
  if (address === null || rest.length > 0) throw refusal(FORMS, value)
  if (length === undefined) return { address, bits: 128 }
  const family = isIPv4(address) ? 'ipv4' : 'ipv6'
  // Whether /8 counts from the first bit or from that of the IPv4 address: libraries have trusted the world over it.
  if (family === 'ipv4' && text.includes(':')) throw refusal('an IPv4 network written with dots', value)
  const longest = family === 'ipv4' ? 32 : 128
  if (!/^\d{1,3}$/.test(length) || Number(length) > longest) throw refusal(FORMS, value)
  const bits = Number(length) + (family === 'ipv4' ? IPV4_BITS : 0)
  const first = networkOf(address, bits)
  const network = { address: first, bits }
  if (family === 'ipv6' && holds(network, ALL_IPV4)) {
    throw refusal(`a network without ::ffff:0:0/96, which is all of IPv4 ${ALOUD}`, value)
  }
  if (Number(length) < WIDEST[family] && !isLocal(network)) {
    throw refusal(
      `a network of at least /${WIDEST[family]}, since a wider one holds strangers ${ALOUD}`,
      value,
    )
  }
  if (!first.every((group, index) => group === address[index])) {
    throw refusal(`${formatAddress(first)}/${length}, the first address of that network`, value)
  }
  return network
}

/** Whether an address is one of a network's. */
export function isWithin(address: Address, network: Network): boolean {
  for (let index = 0; index < 8; index++) {
    const mask = maskOf(index, network.bits)
    if (mask === 0) return true
    if (((address[index] as number) & mask) !== network.address[index]) return false
  }
  return true
}

/** The first address of the network of `bits` that an address is in. */
export function networkOf(address: Address, bits: number): Address {
  return address.map((group, index) => group & maskOf(index, bits))
}

function isLocal(network: Network): boolean {
  return LOCAL.some(local => holds(local, network))
}

function holds(network: Network, other: Network): boolean {
  return network.bits <= other.bits && isWithin(other.address, network)
}

/** A mask of the bits of a group that belong to the first `bits` of an address. */
function maskOf(index: number, bits: number): number {
  const own = Math.min(16, Math.max(0, bits - index * 16))
  return (0xffff << (16 - own)) & 0xffff
}

function refusal(expected: string, got: unknown): HeadgateError {
  return unexpected('ERR_HEADGATE_INVALID_OPTION', 'trustedProxies', expected, got)
}
