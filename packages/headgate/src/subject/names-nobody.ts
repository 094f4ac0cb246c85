/**
 * Tells subjects that name somebody from what a missing id leaves behind: `user:`, `user:undefined`. A caller who
 * names nobody is somebody all the same, and is charged to its address, or to a budget that all such callers share.
 */

/** The subject of all callers who name nobody and have no address. Rules treat it as an address. */
export const ANONYMOUS = 'anonymous:unknown' as const

/** The texts that JavaScript writes for a value that is missing or not meant to be written. */
const WRITTEN_FOR_NOTHING: ReadonlySet<string> = new Set(['undefined', 'null', 'NaN', '[object Object]'])

/** Says why a value names nobody; null if it names somebody. Never shows an id, which may be a secret. */
export function namesNobody(subject: unknown): string | null {
  if (typeof subject === 'string') {
    const colon = subject.indexOf(':')
    return colon > 0 ? missingId(subject.slice(colon + 1)) : 'no type:id'
  }
  if (typeof subject !== 'object' || subject === null) return `a value of type ${typeof subject}`
  const { type, id } = subject as { readonly type?: unknown; readonly id?: unknown }
  if (typeof type !== 'string' || type === '' || type.includes(':')) return 'no type'
  return typeof id === 'string' ? missingId(id) : `an id of type ${typeof id}`
}

function missingId(id: string): string | null {
  if (id.trim() === '') return 'an empty id'
  return WRITTEN_FOR_NOTHING.has(id) ? `the id ${id}` : null
}
