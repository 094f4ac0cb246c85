import type { IncomingMessage } from 'node:http'
import type { Context } from 'hono'
import { HeadgateError } from '../errors/headgate-error.js'
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

  get peer(): never {
    throw new HeadgateError('ERR_HEADGATE_INVALID_SUBJECT', {
      field: 'subject',
      expected: 'one to be given, because outside Node, Hono does not say who is connected',
      got: 'none',
    })
  }

  header(name: string): string | undefined {
    return this.context.req.header(name)
  }
}
