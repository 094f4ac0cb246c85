/**
 * Who a connection comes from, in one spelling. Different spellings of one address would be different budgets, and a
 * household or a rented server has at least a whole IPv6 /64, so that is what counts as one client.
 */
import { isIP } from 'node:net'

/** The peer's address in its shortest spelling, without zone; IPv4 written as IPv6 is IPv4. Null if it is none. */
export function peerAddress(text: string | undefined): string | null {
  const address = text?.replace(/%.*$/s, '') ?? ''
  const family = isIP(address)
  if (family === 0) return null
  if (family === 4) return address
  const groups = groupsOf(address)
  return isMappedIPv4(groups) ? ipv4Of(groups) : compress(groups)
}

/** What is limited together with a peer: the address itself, or the /64 of an IPv6 address. */
export function limitedAddress(text: string | undefined): string | null {
  const address = peerAddress(text)
  if (address === null || isIP(address) === 4) return address
  return `${compress(groupsOf(address).map((group, index) => (index < 4 ? group : 0)))}/64`
}

/** The eight groups of an address that `isIP` has found to be IPv6. */
function groupsOf(address: string): number[] {
  const [head = '', tail] = address.split('::')
  const before = parseGroups(head)
  if (tail === undefined) return before
  const after = parseGroups(tail)
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after]
}

function parseGroups(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap(part => {
    if (!part.includes('.')) return [Number.parseInt(part, 16)]
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number)
    return [a * 256 + b, c * 256 + d]
  })
}

/** ::ffff:0:0/96, and nothing else that has dots in it. */
function isMappedIPv4(groups: readonly number[]): boolean {
  return groups[5] === 0xffff && groups.slice(0, 5).every(group => group === 0)
}

function ipv4Of(groups: readonly number[]): string {
  return groups
    .slice(6)
    .flatMap(group => [group >> 8, group & 0xff])
    .join('.')
}

/** RFC 5952: lower case, and the longest run of at least two zero groups left out. */
function compress(groups: readonly number[]): string {
  const text = groups.map(group => group.toString(16))
  let best = { start: 0, length: 1 }
  for (let start = 0; start < groups.length; start++) {
    let length = 0
    while (groups[start + length] === 0) length++
    if (length > best.length) best = { start, length }
  }
  if (best.length === 1) return text.join(':')
  const before = text.slice(0, best.start).join(':')
  return `${before}::${text.slice(best.start + best.length).join(':')}`
}
