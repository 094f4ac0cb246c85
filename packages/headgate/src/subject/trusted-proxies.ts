import { unexpected } from '../errors/headgate-error.js'
import type { Address } from './address.js'
import { isWithin, parseNetwork } from './network.js'

/**
 * Whose word about a client's address is taken: addresses and networks; `'everybody'`, which lets any caller choose its
 * address unless a proxy in front overwrites what callers write; or the proxies a request has passed, by their number.
 */
export type TrustedProxies = readonly string[] | 'everybody' | { readonly hops: number }

/** Whether to believe an address that stands behind `passed` proxies, counted from this end. */
export type IsTrusted = (address: Address, passed: number) => boolean

const FORMS = 'a list of addresses and networks, everybody, or { hops }'
/** A longer chain of one's own proxies is a loop or an attack. */
export const MAX_PROXIES = 32

/** Makes the function that says whom to believe; null where nobody is believed. */
export function parseTrustedProxies(value: unknown): IsTrusted | null {
  if (value === 'everybody') return () => true
  if (Array.isArray(value)) {
    const networks = value.map(parseNetwork)
    return networks.length === 0 ? null : address => networks.some(network => isWithin(address, network))
  }
  const hops = hopsOf(value)
  return (_address, passed) => passed < hops
}

function hopsOf(value: unknown): number {
  if (typeof value !== 'object' || value === null || !('hops' in value)) throw refusal('', FORMS, value)
  const other = Object.keys(value).find(key => key !== 'hops')
  if (other !== undefined) throw refusal(`.${other}`, 'hops alone', other)
  const { hops } = value
  if (typeof hops === 'number' && Number.isInteger(hops) && hops >= 1 && hops <= MAX_PROXIES) return hops
  throw refusal('.hops', `a whole number from 1 to ${MAX_PROXIES}`, hops)
}

function refusal(below: string, expected: string, got: unknown): Error {
  return unexpected('ERR_HEADGATE_INVALID_OPTION', `trustedProxies${below}`, expected, got)
}
