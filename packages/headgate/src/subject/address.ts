/**
 * Addresses in one spelling. Different spellings of one address would be different budgets, so every address is read
 * into the same eight numbers: IPv4 is the IPv6 address that stands for it (`::ffff:0:0/96`).
 */

/** Eight groups of 16 bits. */
export type Address = readonly number[]

const MAX_LENGTH = 64
const OCTET = /^(?:0|[1-9]\d{0,2})$/
const GROUP = /^[0-9a-fA-F]{1,4}$/

/** An address without its zone, or null for what is none. Octal, hexadecimal and short forms of IPv4 are none. */
export function parseAddress(text: string): Address | null {
  if (text.length > MAX_LENGTH) return null
  const zone = text.indexOf('%')
  const address = zone < 0 ? text : text.slice(0, zone)
  if (!address.includes(':')) {
    const octets = parseOctets(address)
    return octets === null ? null : [0, 0, 0, 0, 0, 0xffff, ...octets]
  }
  const [head = '', tail, ...more] = address.split('::')
  if (more.length > 0) return null
  const before = parseGroups(head, tail === undefined)
  if (tail === undefined) return before?.length === 8 ? before : null
  const after = parseGroups(tail, true)
  if (before === null || after === null || before.length + after.length > 7) return null
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after]
}

/** The shortest spelling: dots for IPv4, RFC 5952 for the rest. */
export function formatAddress(address: Address): string {
  if (!isIPv4(address)) return compress(address)
  return address
    .slice(6)
    .flatMap(group => [group >> 8, group & 0xff])
    .join('.')
}

/** `::ffff:0:0/96`, and nothing else that has dots in it. */
export function isIPv4(address: Address): boolean {
  return address[5] === 0xffff && address.slice(0, 5).every(group => group === 0)
}

function parseGroups(text: string, mayEndInIPv4: boolean): number[] | null {
  if (text === '') return []
  const parts = text.split(':')
  const groups: number[] = []
  for (const [index, part] of parts.entries()) {
    const octets = mayEndInIPv4 && index === parts.length - 1 ? parseOctets(part) : null
    if (octets !== null) groups.push(...octets)
    else if (GROUP.test(part)) groups.push(Number.parseInt(part, 16))
    else return null
  }
  return groups
}

/** The two groups of four octets. */
function parseOctets(text: string): [number, number] | null {
  const octets = text.split('.')
  if (octets.length !== 4 || !octets.every(octet => OCTET.test(octet) && Number(octet) < 256)) return null
  const [a = 0, b = 0, c = 0, d = 0] = octets.map(Number)
  return [a * 256 + b, c * 256 + d]
}

/** Lower case, and the longest run of at least two zero groups left out. */
function compress(groups: Address): string {
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
