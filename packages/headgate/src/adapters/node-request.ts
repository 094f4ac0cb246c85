import type { IncomingMessage } from 'node:http'
import type { HttpRequest } from '../subject/http-request.js'

/** Shows a request of Node's own server to the core, below any framework. */
export class NodeRequest implements HttpRequest {
  constructor(
    private readonly req: IncomingMessage,
    /** As the client wrote it: frameworks cut off the mount path of a router. */
    readonly url: string,
    /** Called only when needed, because some frameworks build a new object for it. */
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

/** Converts a framework's route, which may be a list or an expression, to text. */
export function routeText(route: unknown): string | undefined {
  return route === undefined || route === null ? undefined : String(route)
}
