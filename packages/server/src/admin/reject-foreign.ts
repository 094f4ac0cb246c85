/**
 * Keeps web pages off the admin port. A page can reach it neither by another name for its address (DNS rebinding),
 * nor by a request that a browser sends from another site.
 */
import type { IncomingMessage } from 'node:http'
import { isIPv4, isIPv6 } from 'node:net'
import type { Rejection } from '../http/problem.js'
import { headerValues } from '../http/raw-headers.js'

const LOOPBACK = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])$/i
const HOST = /^(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(?::\d{1,5})?$/
const SAME_SITE = ['same-origin', 'none']

/** The names by which the port may be called. */
export interface OwnNames {
  /** Whether any address will do. No page has an address as its name; and with tokens, other machines may call. */
  readonly addresses: boolean
  readonly names: readonly string[]
  /** Whether the headers belong to a request that is only asked about. */
  readonly isRelay?: boolean
}

/** Returns why a request is rejected, or null. */
export function rejectForeign(req: IncomingMessage, own: OwnNames): Rejection | null {
  const hosts = headerValues(req, 'host')
  if (hosts.length !== 1) return { status: 400, detail: `Host: expected exactly one; got ${hosts.length}` }
  const host = hosts[0] as string
  if (!isOwn(host, own)) return forbidden(`Host: expected ${ownWords(own)}`)
  if (own.isRelay === true) return null
  if (!headerValues(req, 'origin').every(origin => hostOf(origin) === host.toLowerCase())) {
    return forbidden('Origin: expected none, or the one that Host names')
  }
  if (!headerValues(req, 'sec-fetch-site').every(site => SAME_SITE.includes(site))) {
    return forbidden('Sec-Fetch-Site: expected same-origin or none')
  }
  return null
}

function isOwn(host: string, { addresses, names }: OwnNames): boolean {
  const name = HOST.exec(host)?.[1]?.toLowerCase()
  if (name === undefined) return false
  if (LOOPBACK.test(name) || names.includes(name)) return true
  return addresses && (isIPv4(name) || isIPv6(name.replace(/^\[(.*)\]$/, '$1')))
}

function ownWords({ addresses, names }: OwnNames): string {
  return ['localhost', ...names, addresses ? 'an address' : 'a loopback address'].join(', ')
}

/** `null`, which sandboxed pages send, belongs to nobody. */
function hostOf(origin: string): string | null {
  return URL.canParse(origin) ? new URL(origin).host : null
}

function forbidden(detail: string): Rejection {
  return { status: 403, detail }
}
