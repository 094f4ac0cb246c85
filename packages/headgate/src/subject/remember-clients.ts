const REMEMBERED = 10_000
/** Longer ones are read each time: remembering them would let callers fill the memory with their text. */
const REMEMBERED_LENGTH = 256

/** Names a client by the peer of its connection and by what a proxy says of it. */
export type NameClient = (peer: string, forwarded: string | undefined) => `ip:${string}`

/** Clients come back, and reading an address takes ten times as long as deciding: what was read is remembered. */
export function rememberClients(nameClient: NameClient): NameClient {
  const names = new Map<string, `ip:${string}`>()
  return (peer, forwarded) => {
    // No address contains a space.
    const read = forwarded === undefined ? peer : `${peer} ${forwarded}`
    const known = names.get(read)
    if (known !== undefined) return known
    const name = nameClient(peer, forwarded)
    if (read.length > REMEMBERED_LENGTH) return name
    // Forgetting all at once is rare and needs no order of use.
    if (names.size >= REMEMBERED) names.clear()
    names.set(read, name)
    return name
  }
}
