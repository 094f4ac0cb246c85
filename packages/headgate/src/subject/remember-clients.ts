import type { ANONYMOUS } from './names-nobody.js'

const REMEMBERED = 10_000
/** Longer texts are parsed each time: remembering them would let callers fill the memory. */
const REMEMBERED_LENGTH = 256

/** The subject of a client's address, or of all clients without one. */
export type AddressSubject = `ip:${string}` | typeof ANONYMOUS

/** Names a client by the peer of its connection and the header a proxy wrote. */
export type NameClient = (peer: string, forwarded: string | undefined) => AddressSubject

/**
 * Caches the names of clients: clients come back, and parsing an address takes ten times as long as deciding.
 */
export function rememberClients(nameClient: NameClient): NameClient {
  const names = new Map<string, AddressSubject>()
  return (peer, forwarded) => {
    // Unambiguous, because no address contains a space.
    const read = forwarded === undefined ? peer : `${peer} ${forwarded}`
    const known = names.get(read)
    if (known !== undefined) return known
    const name = nameClient(peer, forwarded)
    if (read.length > REMEMBERED_LENGTH) return name
    // Clearing the whole cache is rare, and needs no tracking of use.
    if (names.size >= REMEMBERED) names.clear()
    names.set(read, name)
    return name
  }
}
