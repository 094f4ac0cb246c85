/** `GET /v1/forward-auth`: lets nginx (`auth_request`), Traefik, Caddy and others limit what they forward. */
import type { IncomingMessage } from 'node:http'
import type { RuleLimiter } from 'headgate'
import type { HttpRequest, Identify } from 'headgate/identify'
import { checks, type Endpoint, RequestError } from '../admin/endpoint.js'
import { enforceRequests } from '../gateway/enforce-requests.js'
import type { HttpAnswer } from '../http/problem.js'
import type { WriteLine } from '../log/write-line.js'
import { originalRequest } from './original-request.js'

export interface ForwardAuthOptions {
  readonly limiter: RuleLimiter
  /** Identifies the caller by the file in force. */
  identify(): Identify
  readonly log: WriteLine
}

/** Carries the status the client should get, whatever the proxy makes of ours. */
const STATUS_HEADER = 'Headgate-Status'
/** nginx accepts no other rejections. */
const DENIED = ['401', '403', '429']

export function forwardAuthEndpoint({ limiter, identify, log }: ForwardAuthOptions): Endpoint {
  const enforce = enforceRequests<HttpRequest>({ limiter, identify, log, read: request => request })

  async function answer(req: IncomingMessage): Promise<HttpAnswer> {
    const denied = deniedStatus(req)
    const outcome = await enforce(originalRequest(req))
    // Nobody reports when the request ends.
    outcome.decision?.abandon()
    if (outcome.allowed)
      return { status: 200, headers: [...outcome.headers, [STATUS_HEADER, '200']], body: '' }
    const { status, headers, body } = outcome
    return { status: denied ?? status, headers: [...headers, [STATUS_HEADER, String(status)]], body }
  }

  return { path: '/v1/forward-auth', isRelay: true, methods: { GET: checks(answer), HEAD: checks(answer) } }
}

/** Returns the status with which denials are sent; null: their own. */
function deniedStatus({ url = '' }: IncomingMessage): number | null {
  const given = new URLSearchParams(url.split('?')[1] ?? '').get('denied')
  if (given === null) return null
  if (DENIED.includes(given)) return Number(given)
  throw new RequestError(400, { field: 'denied', expected: `one of ${DENIED.join(', ')}` })
}
