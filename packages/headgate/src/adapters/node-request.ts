import type { IncomingMessage } from 'node:http'
import type { HttpRequest } from '../subject/http-request.js'

/** A request of Node's own server, below whichever framework. */
export class NodeRequest implements HttpRequest {
  constructor(
    private readonly req: IncomingMessage,
    /** As the client wrote it: frameworks cut off what a router is mounted on. */
    readonly url: string,
    /** Asked only where somebody wants to know: some frameworks make a new object for it. */
    private readonly routeOf: () => string | undefined = noRoute,
  ) {}

  get route(): string | undefined {
    return this.routeOf()
  }

  get method(): string {
    return this.req.method ?? ''
  }

  get peer(): string | undefined {
    return this.req.socket?.remoteAddress
  }

  header(name: string): string | undefined {
    const value = this.req.headers[name]
    return Array.isArray(value) ? value.join(', ') : value
  }
}

function noRoute(): undefined {}

/** A route as a framework has it, which may be a list or an expression, as text. */
export function routeText(route: unknown): string | undefined {
  return route === undefined || route === null ? undefined : String(route)
}
