import type { IncomingMessage } from 'node:http'
import type { Context } from 'hono'
import { HeadgateError } from '../errors/headgate-error.js'
import type { HttpRequest } from '../subject/http-request.js'

/** Where @hono/node-server keeps the request it was given. */
export function incomingOf({ env }: Context): IncomingMessage | undefined {
  return env?.incoming
}

/** The execution context of the runtime; Hono throws where it was handed none. */
export function lifetimeOf(context: Context): unknown {
  try {
    return context.executionCtx
  } catch {
    return undefined
  }
}

/** The pattern of the last handler; it comes after every middleware. */
export function routeOf({ req }: Context): string | undefined {
  return req.matchedRoutes.at(-1)?.path
}

/** A request outside Node, as the core sees it. */
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
    throw new HeadgateError(
      'ERR_HEADGATE_INVALID_SUBJECT',
      'subject: expected one to be given: outside Node, Hono does not say who is connected',
    )
  }

  header(name: string): string | undefined {
    return this.context.req.header(name)
  }
}
