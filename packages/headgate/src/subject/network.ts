import { type HeadgateError, unexpected } from '../errors.js'
import { type Address, formatAddress, isIPv4, parseAddress } from './address.js'

/** The addresses that begin with the same bits. */
export interface Network {
  readonly address: Address
  /** Of 128; those of IPv4 begin at 96. */
  readonly bits: number
}

const FORMS = 'an address or a network, such as 10.0.0.5, 10.0.0.0/8 or fd00::/8'
/** What trusts more is a mistake, or an open door: `0.0.0.0/1` twice is everybody. */
const WIDEST = { ipv4: 8, ipv6: 7 }
const IPV4_BITS = 96

/** A network whose word is to be taken. Refuses what would trust everybody, and what is read in two ways. */
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
  if (Number(length) < WIDEST[family]) {
    throw refusal(`a network of at least /${WIDEST[family]}, since a wider one trusts strangers`, value)
  }
  const bits = Number(length) + (family === 'ipv4' ? IPV4_BITS : 0)
  const first = address.map((group, index) => group & maskOf(index, bits))
  if (!first.every((group, index) => group === address[index])) {
    throw refusal(`${formatAddress(first)}/${length}, the first address of that network`, value)
  }
  return { address, bits }
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

/** Which bits of a group belong to the first `bits` of an address. */
function maskOf(index: number, bits: number): number {
  const own = Math.min(16, Math.max(0, bits - index * 16))
  return (0xffff << (16 - own)) & 0xffff
}

function refusal(expected: string, got: unknown): HeadgateError {
  return unexpected('ERR_HEADGATE_INVALID_OPTION', 'trustedProxies', expected, got)
}
