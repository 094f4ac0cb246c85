import type { IncomingMessage } from 'node:http'
import type { HttpRequest } from 'headgate/identify'
import { leavingSignal } from 'headgate/internal'
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
  return new NodeRequest(req)
}

/** A class, because V8 makes a literal with an accessor a hundred times more slowly. */
class NodeRequest implements HttpRequest {
  declare readonly id?: string
  readonly method: string
  readonly url: string
  readonly peer: string | undefined
  readonly route = undefined

  constructor(private readonly req: IncomingMessage) {
    const id = requestIdOf(req)
    if (id !== undefined) this.id = id
    this.method = req.method ?? ''
    this.url = req.url ?? ''
    this.peer = req.socket.remoteAddress
  }

  header(name: string): string | undefined {
    const values = headerValues(this.req, name)
    // Cookies are the only header whose lines are not joined by commas.
    return values.length === 0 ? undefined : values.join(name === 'cookie' ? '; ' : ', ')
  }

  get signal(): AbortSignal | undefined {
    return leavingSignal(this.req)
  }

  similarHeaders(name: string): readonly string[] {
    return similarHeaderValues(this.req, name)
  }
}
