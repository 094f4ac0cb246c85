import type { IncomingMessage } from 'node:http'
import type { Context } from 'hono'
import type { HttpRequest } from '../subject/http-request.js'

/** Returns the Node request behind a context of @hono/node-server. */
export function incomingOf({ env }: Context): IncomingMessage | undefined {
  return env?.incoming
}

/** Returns the runtime's execution context; Hono throws if there is none. */
export function lifetimeOf(context: Context): unknown {
  try {
    return context.executionCtx
  } catch {
    return undefined
  }
}

/** Returns the pattern of the last handler, which comes after every middleware. */
export function routeOf({ req }: Context): string | undefined {
  return req.matchedRoutes.at(-1)?.path
}

/** Shows a request outside Node to the core. */
export class HonoRequest implements HttpRequest {
  /** Outside Node, Hono does not say who is connected. */
  readonly peer = undefined

  constructor(private readonly context: Context) {}

  get method(): string {
    return this.context.req.method
  }

  get url(): string {
    return this.context.req.url
  }

  get route(): string | undefined {
    return routeOf(this.context)
  }

  header(name: string): string | undefined {
    return this.context.req.header(name)
  }
}
