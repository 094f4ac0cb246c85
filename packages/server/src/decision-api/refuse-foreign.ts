/**
 * The decision API answers this machine only. A web page cannot reach it by another name for 127.0.0.1 (DNS
 * rebinding), nor by a request that a browser sends from another site.
 */
import type { IncomingMessage } from 'node:http'
import type { Refusal } from '../http/problem.js'
import { headerValues } from '../http/raw-headers.js'

const LOOPBACK = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?$/i
const SAME_SITE = ['same-origin', 'none']

/** Why a request is refused, or null. */
export function refuseForeign(req: IncomingMessage): Refusal | null {
  const hosts = headerValues(req, 'host')
  if (hosts.length !== 1) return { status: 400, detail: `Host: expected exactly one; got ${hosts.length}` }
  if (!LOOPBACK.test(hosts[0] as string)) return forbidden('Host: expected localhost or a loopback address')
  if (!headerValues(req, 'origin').every(isLoopbackOrigin)) {
    return forbidden('Origin: expected none, or one on this machine')
  }
  if (!headerValues(req, 'sec-fetch-site').every(site => SAME_SITE.includes(site))) {
    return forbidden('Sec-Fetch-Site: expected same-origin or none')
  }
  return null
}

function isLoopbackOrigin(origin: string): boolean {
  return URL.canParse(origin) && LOOPBACK.test(new URL(origin).host)
}

function forbidden(detail: string): Refusal {
  return { status: 403, detail }
}
