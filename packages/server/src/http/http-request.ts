import type { IncomingMessage } from 'node:http'
import type { HttpRequest } from 'headgate/identify'
import { headerValues, similarHeaderValues } from './raw-headers.js'

const ID = Symbol('id')

/** Gives a request its id, by which its denial can be found. */
export function setRequestId(req: IncomingMessage & { [ID]?: string }, id: string): void {
  req[ID] = id
}

/** Returns the id that was given to a request; undefined for one that has none. */
export function requestIdOf(req: IncomingMessage & { [ID]?: string }): string | undefined {
  return req[ID]
}

/** Shows a request of Node in the form that sources read. */
export function httpRequest(req: IncomingMessage): HttpRequest {
  const id = requestIdOf(req)
  return {
    ...(id !== undefined && { id }),
    method: req.method ?? '',
    url: req.url ?? '',
    peer: req.socket.remoteAddress,
    route: undefined,
    header(name) {
      const values = headerValues(req, name)
      // Cookies are the only header whose lines are not joined by commas.
      return values.length === 0 ? undefined : values.join(name === 'cookie' ? '; ' : ', ')
    },
    similarHeaders: name => similarHeaderValues(req, name),
  }
}
