/** `GET /v1/forward-auth`: lets nginx (`auth_request`), Traefik, Caddy and their like limit what they forward. */
import type { IncomingMessage } from 'node:http'
import { type Decision, decisionHeaders, decisionProblem, type Gate } from 'headgate'
import type { Identify } from 'headgate/identify'
import { checks, type Endpoint } from '../admin/endpoint.js'
import { RequestError } from '../admin/request-error.js'
import { type Log, throttledLog } from '../gateway/throttled-log.js'
import type { HttpAnswer } from '../http/problem.js'
import { type OriginalRequest, originalRequest } from './original-request.js'

export interface ForwardAuthOptions {
  readonly gate: Pick<Gate, 'request' | 'decideFault'>
  /** Finds who is asking, by the file that is in force. */
  identify(): Identify
  readonly log: Log
}

/** Carries the status the client should get, whatever the proxy makes of ours. */
const STATUS_HEADER = 'Headgate-Status'
/** nginx takes no other refusals. */
const DENIED = ['401', '403', '429']
const FAULT_LINE_EVERY_MS = 60_000

export function forwardAuthEndpoint({ gate, identify, log }: ForwardAuthOptions): Endpoint {
  const logFault = throttledLog(log, FAULT_LINE_EVERY_MS)

  async function decide({ request, method, path, claimedMethods }: OriginalRequest): Promise<Decision> {
    try {
      const { subjects, tier } = await identify()(request)
      return await gate.request({
        ...{ subject: subjects, method, path, claimedMethods },
        ...(tier !== undefined && { tier }),
      })
    } catch (error) {
      logFault('forward-auth', () => `forward-auth: the failure mode decides: ${(error as Error).message}`)
      return gate.decideFault({ method, path })
    }
  }

  async function answer(req: IncomingMessage): Promise<HttpAnswer> {
    const denied = deniedStatus(req)
    const decision = await decide(originalRequest(req))
    // Nobody tells when the request is over.
    decision.letExpire()
    const headers = decisionHeaders(decision)
    if (decision.allowed) return { status: 200, headers: [...headers, [STATUS_HEADER, '200']], body: '' }
    const problem = decisionProblem(decision)
    return {
      status: denied ?? problem.status,
      headers: [...problem.headers, ...headers, [STATUS_HEADER, String(problem.status)]],
      body: `${JSON.stringify(problem.body)}\n`,
    }
  }

  return { path: '/v1/forward-auth', isRelay: true, methods: { GET: checks(answer), HEAD: checks(answer) } }
}

/** The status that denials are sent with; null: the one that they have. */
function deniedStatus({ url = '' }: IncomingMessage): number | null {
  const given = new URLSearchParams(url.split('?')[1] ?? '').get('denied')
  if (given === null) return null
  if (DENIED.includes(given)) return Number(given)
  throw new RequestError(400, 'denied', `expected one of ${DENIED.join(', ')}`)
}
