/**
 * Lets pages of listed origins read what the gateway itself answers. Answers of upstreams keep the headers they came
 * with: nothing is guessed from them.
 */
import type { IncomingMessage } from 'node:http'
import type { CorsConfig, HeaderField } from 'headgate/internal'
import type { HttpAnswer } from '../http/problem.js'
import { PREFLIGHT } from './own-answers.js'

export interface Cors {
  /** Returns the answer to a preflight of a listed origin; null for any other request. */
  preflight(req: IncomingMessage): HttpAnswer | null
  /** Returns an answer of the gateway's own, readable by the page that asked if its origin is listed. */
  readable(req: IncomingMessage, answer: HttpAnswer): HttpAnswer
}

/** A browser asks again after ten minutes; those that allow less ask earlier. */
const MAX_AGE_SECONDS = '600'
/** Headers that every page may read anyway, by the Fetch standard. */
const SAFE = ['content-type', 'cache-control']
const ANY_ORIGIN = '*'

export function createCors({ origins, exposedHeaders, credentials }: CorsConfig): Cors {
  const listed = new Set(origins)
  const isAny = listed.has(ANY_ORIGIN)

  /** Returns the headers that admit the page's origin; null if it is not listed. */
  function admitting({ headers }: IncomingMessage): HeaderField[] | null {
    const { origin } = headers
    if (origin === undefined || !(isAny || listed.has(origin))) return null
    const fields: HeaderField[] = [['Access-Control-Allow-Origin', isAny ? ANY_ORIGIN : origin]]
    if (credentials) fields.push(['Access-Control-Allow-Credentials', 'true'])
    return fields
  }

  return {
    preflight(req) {
      const method = req.headers['access-control-request-method']
      if (req.method !== 'OPTIONS' || method === undefined) return null
      const headers = admitting(req)
      if (headers === null) return null
      headers.push(['Access-Control-Allow-Methods', method], ['Access-Control-Max-Age', MAX_AGE_SECONDS])
      const asked = req.headers['access-control-request-headers']
      if (asked !== undefined) headers.push(['Access-Control-Allow-Headers', asked])
      headers.push(['Vary', 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers'])
      return { status: 204, headers, body: '', reason: PREFLIGHT }
    },
    readable(req, answer) {
      const headers = admitting(req)
      // Also without an origin: a cache must not give this answer to a page that has one.
      const vary: readonly HeaderField[] = isAny ? [] : [['Vary', 'Origin']]
      if (headers === null) return { ...answer, headers: [...answer.headers, ...vary] }
      const exposed = exposedHeaders ?? namesOf(answer.headers)
      if (exposed.length > 0) headers.push(['Access-Control-Expose-Headers', exposed.join(', ')])
      return { ...answer, headers: [...answer.headers, ...headers, ...vary] }
    },
  }
}

function namesOf(fields: readonly HeaderField[]): readonly string[] {
  return fields.map(([name]) => name).filter(name => !SAFE.includes(name.toLowerCase()))
}
