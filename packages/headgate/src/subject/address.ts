/**
 * Reads every spelling of an address into the same eight numbers, because two spellings of one address would be
 * two budgets. IPv4 is kept as the IPv6 address that maps to it (`::ffff:0:0/96`).
 */

/** Eight groups of 16 bits. */
export type Address = readonly number[]

const MAX_LENGTH = 64
const GROUP = /^[0-9a-fA-F]{1,4}$/
const [DOT, ZERO, NINE] = [0x2e, 0x30, 0x39]

/**
 * Parses an address and drops its zone; null if the text is not an address. Octal, hexadecimal and short forms
 * of IPv4 are rejected.
 */
export function parseAddress(text: string): Address | null {
  if (text.length > MAX_LENGTH) return null
  const zone = text.indexOf('%')
  const address = zone < 0 ? text : text.slice(0, zone)
  if (!address.includes(':')) {
    const octets = parseOctets(address)
    return octets === null ? null : [0, 0, 0, 0, 0, 0xffff, octets[0], octets[1]]
  }
  const [head = '', tail, ...more] = address.split('::')
  if (more.length > 0) return null
  const before = parseGroups(head, tail === undefined)
  if (tail === undefined) return before?.length === 8 ? before : null
  const after = parseGroups(tail, true)
  if (before === null || after === null || before.length + after.length > 7) return null
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after]
}

/** Formats an address in its shortest spelling: dotted for IPv4, RFC 5952 for IPv6. */
export function formatAddress(address: Address): string {
  if (!isIPv4(address)) return compress(address)
  const [, , , , , , high = 0, low = 0] = address
  return `${high >> 8}.${high & 0xff}.${low >> 8}.${low & 0xff}`
}

/** Whether an address lies in `::ffff:0:0/96`. Dots alone do not make an address IPv4. */
export function isIPv4(address: Address): boolean {
  if (address[5] !== 0xffff) return false
  for (let index = 0; index < 5; index++) if (address[index] !== 0) return false
  return true
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

/** Packs four octets into two groups. Reads digit by digit, because every request's address passes here. */
function parseOctets(text: string): [number, number] | null {
  let read = 0
  let dots = 0
  // -1 until the first digit. A leading zero takes no further digit: servers disagree on whether 010 is eight or ten.
  let octet = -1
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === DOT) {
      if (octet < 0) return null
      read = read * 256 + octet
      dots++
      octet = -1
    } else {
      if (code < ZERO || code > NINE || octet === 0) return null
      octet = Math.max(octet, 0) * 10 + code - ZERO
      if (octet > 255) return null
    }
  }
  if (dots !== 3 || octet < 0) return null
  return [Math.floor(read / 256), (read % 256) * 256 + octet]
}

/** Formats in lower case, with the longest run of at least two zero groups left out. */
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
