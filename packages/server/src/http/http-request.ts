import type { IncomingMessage } from 'node:http'
import type { HttpRequest } from 'headgate/identify'
import { headerValues, similarHeaderValues } from './raw-headers.js'

/** Shows a request of Node in the form that sources read. */
export function httpRequest(req: IncomingMessage): HttpRequest {
  return {
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
