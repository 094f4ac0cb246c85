const SHOWN = 2
const DIGEST = 10

/**
 * A subject as it is shown to operators who need not know who it is: enough to tell one from another, too little to find
 * the person. The handle beside it leads to the whole name.
 */
export function maskSubject(subject: string): string {
  const colon = subject.indexOf(':')
  const type = subject.slice(0, colon)
  const id = subject.slice(colon + 1)
  return `${type}:${maskId(type, id)}`
}

function maskId(type: string, id: string): string {
  // What is stored as a digest says nothing as it is.
  if (id.startsWith('~')) return `${id.slice(0, DIGEST)}…`
  if (type === 'ip') return maskAddress(id)
  return id.length <= 2 * SHOWN ? '…' : `${id.slice(0, SHOWN)}…`
}

/** Half of an IPv4 address, and the first two groups of an IPv6 one: the provider, not the customer. */
function maskAddress(id: string): string {
  const separator = id.includes(':') ? ':' : '.'
  const parts = id.split(separator)
  return parts.length < 3 ? '…' : `${parts.slice(0, SHOWN).join(separator)}${separator}…`
}
