import type { Masks } from 'headgate/internal'

const SHOWN = 2
const DIGEST = 10
const HIDDEN = '…'

/**
 * Masks a subject for operators who need not know who it is: a masked part is enough to distinguish subjects and
 * too little to find the person, unless the masks say otherwise. The reference beside it leads to the full name.
 */
export function maskSubject(subject: string, { byType, others }: Masks): string {
  const colon = subject.indexOf(':')
  const type = subject.slice(0, colon)
  const mask = Object.hasOwn(byType, type) ? byType[type] : others
  if (mask === 'whole') return subject
  return `${type}:${mask === 'hidden' ? HIDDEN : partOf(type, subject.slice(colon + 1))}`
}

function partOf(type: string, id: string): string {
  // A digest reveals nothing.
  if (id.startsWith('~')) return `${id.slice(0, DIGEST)}${HIDDEN}`
  if (type === 'ip') return partOfAddress(id)
  return id.length <= 2 * SHOWN ? HIDDEN : `${id.slice(0, SHOWN)}${HIDDEN}`
}

/** Half of an IPv4 address, or the first two groups of an IPv6 one: the provider, not the customer. */
function partOfAddress(id: string): string {
  const separator = id.includes(':') ? ':' : '.'
  const parts = id.split(separator)
  return parts.length < 3 ? HIDDEN : `${parts.slice(0, SHOWN).join(separator)}${separator}${HIDDEN}`
}
