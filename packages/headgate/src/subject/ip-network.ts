/**
 * Names of IPv6 callers. A caller is the /64 of its address; whoever has one /64 can often get 256 of them, so
 * the /56 and /48 around it may have budgets of their own. Names spell out all four groups, as in
 * `ip:2001:db8:0:1::/64`, so that the surrounding network is found by truncation.
 */
import { type Address, formatAddress, isIPv4, parseAddress } from './address.js'
import { networkOf } from './network.js'

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
export function ipName(id: string): string | null {
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
