/**
 * The request that a proxy asks about. The proxy sends a request of its own, with the headers of the original one
 * and a few that describe it: nginx as configured, Traefik and Caddy as `X-Forwarded-*`.
 */
import type { IncomingMessage } from 'node:http'
import type { HttpRequest } from 'headgate/identify'
import { RequestError } from '../admin/endpoint.js'
import { httpRequest } from '../http/http-request.js'
import { headerValues, similarHeaderValues } from '../http/raw-headers.js'

const METHOD = ['x-forwarded-method', 'x-original-method']
const TARGET = ['x-forwarded-uri', 'x-original-uri', 'x-original-url']
const FORWARDED_FOR = 'x-forwarded-for'
/** As the gateway takes one from a proxy: bounded, and of letters that are safe in a log. */
const REQUEST_ID = /^[\w.:/+=@-]{1,128}$/
const ORIGIN = /^https?:\/\/[^/?#]*/i

/**
 * Returns it as sources read it: its peer is the client of the proxy. Throws a `RequestError` that says which
 * header the proxy has to send.
 */
export function originalRequest(req: IncomingMessage): HttpRequest {
  const method = theOne(req, METHOD)
  const path = theOne(req, TARGET).replace(ORIGIN, '') || '/'
  const { peer, before } = addresses(req)
  const asItCame = httpRequest(req)
  const [id, ...others] = headerValues(req, 'x-request-id')
  return {
    method,
    url: path,
    peer,
    route: undefined,
    header: name => (name === FORWARDED_FOR ? before : asItCame.header(name)),
    get signal() {
      return asItCame.signal
    },
    similarHeaders: name => similarHeaderValues(req, name),
    ...(id !== undefined && others.length === 0 && REQUEST_ID.test(id) && { id }),
  }
}

/**
 * Reads what the proxy says. It overwrites the header it uses and leaves the others as the client sent them: if two
 * disagree, the client made one up.
 */
function theOne(req: IncomingMessage, names: readonly string[]): string {
  const said = new Set(names.flatMap(name => headerValues(req, name)))
  const [only] = said
  if (only !== undefined && only !== '' && said.size === 1) return only
  const got = said.size > 1 ? 'several that differ' : 'none'
  throw new RequestError(400, { field: names[0] ?? '', expected: `one value of ${names.join(', ')}`, got })
}

/** The last address is the one the proxy saw; those before it are claims of that one. */
function addresses(req: IncomingMessage): { readonly peer: string; readonly before: string | undefined } {
  const all = headerValues(req, FORWARDED_FOR).flatMap(value => value.split(','))
  const peer = all.pop()?.trim() ?? ''
  if (peer === '')
    throw new RequestError(400, { field: FORWARDED_FOR, expected: "the client's address", got: 'none' })
  return { peer, before: all.length === 0 ? undefined : all.join(',') }
}
