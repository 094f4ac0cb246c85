import type { AddressInfo, Server } from 'node:net'

/** Where a server is to listen, and the flags that choose it, for messages. */
export interface ListenAt {
  readonly host: string
  readonly port: number
  readonly hostFlag: string
  readonly portFlag: string
  /** Whether it belongs to this process alone, even where several share their ports. */
  readonly exclusive?: boolean
}

/**
 * More than any system allows, which takes its own bound then (`net.core.somaxconn`). With Node's 511, a crowd of
 * clients loses connections that a moment later would have been accepted, and a proxy that asks us goes by its fallback.
 */
const BACKLOG = 65_535

/** Explains in a sentence why a place cannot be listened on. */
class ListenError extends Error {
  constructor(place: ListenAt, cause: NodeJS.ErrnoException) {
    super(explain(place, cause), { cause })
    this.name = 'ListenError'
  }
}

/** Starts listening and returns the port, which the system chooses if 0 was asked for. */
export function listen(server: Server, place: ListenAt): Promise<number> {
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) => reject(new ListenError(place, error))
    server.once('error', onError)
    const { host, port, exclusive = false } = place
    server.listen({ host, port, exclusive, backlog: BACKLOG }, () => {
      server.off('error', onError)
      resolve((server.address() as AddressInfo).port)
    })
  })
}

function explain(
  { host, port, hostFlag, portFlag }: ListenAt,
  { code, message }: NodeJS.ErrnoException,
): string {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} on ${host} is already in use; choose another with ${portFlag}`
    case 'EACCES':
      return `port ${port} on ${host} needs more rights than this process has; choose another with ${portFlag}`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is no address of this machine; choose another with ${hostFlag}`
    default:
      return `cannot listen on ${host} port ${port}: ${message}`
  }
}

export function urlOf(host: string, port: number, scheme: 'http' | 'https' = 'http'): string {
  return `${scheme}://${hostAndPort(host, port)}`
}

export function hostAndPort(host: string, port: number): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}
