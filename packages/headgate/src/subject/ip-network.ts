/**
 * The names of IPv6 callers. A caller has the /64 of its address; whoever has one /64 can often have 256 of them, so the
 * /56 and the /48 around it may have budgets of their own. Names are written with all four groups that matter,
 * `ip:2001:db8:0:1::/64`, so that the network around one is found by cutting it off.
 */
import { type Address, formatAddress, isIPv4, parseAddress } from './address.js'
import { networkOf } from './network.js'

const PREFIX = 'ip:'
/** The widest network that is ever charged together: its name chooses the slot of all within it. */
export const WIDEST_BITS = 48
/** The size of one caller's network. */
export const CALLER_BITS = 64
const WIDEST_GROUPS = WIDEST_BITS / 16
/** Nothing in it has to be encoded in a key. */
const NAME = /^ip:[0-9a-f:]+::\/(?:4[89]|5\d|6[0-4])$/
const NETWORK = /^([^/]+)\/(\d{2})$/

/** The name of an `ip` subject by its id; null for an id that is neither an IPv6 address nor a network of /48 to /64. */
export function ipName(id: string): string | null {
  const [, text = id, length] = NETWORK.exec(id) ?? []
  const bits = length === undefined ? CALLER_BITS : Number(length)
  const address = bits < WIDEST_BITS || bits > CALLER_BITS ? null : parseAddress(text)
  if (address === null) return null
  if (isIPv4(address)) return length === undefined ? PREFIX + formatAddress(address) : null
  return networkName(address, bits)
}

/** Whether a name is that of an IPv6 caller, around which there are wider networks. */
export function isIPv6Caller(name: string): boolean {
  return isIPv6Name(name) && name.endsWith(`/${CALLER_BITS}`)
}

/** Whether a name is made of an IPv6 network, and so may differ from what the caller wrote. */
export function isIPv6Name(name: string): boolean {
  // Most subjects differ in the first letter, and addresses of IPv4 in the last but two.
  return name.charCodeAt(0) === 105 && name.charCodeAt(name.length - 3) === 47 && NAME.test(name)
}

/** The name of the network of `bits` around an IPv6 caller. */
export function networkAround(caller: string, bits: number): string {
  const groups = groupsOf(caller).map(group => Number.parseInt(group, 16))
  return networkName([...groups, 0, 0, 0, 0], bits)
}

/** The name that chooses the slot of a subject's keys: for IPv6 the /48, so that the networks around a caller lie with it. */
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
