import { unexpected } from '../errors/headgate-error.js'
import type { Address } from './address.js'
import { isWithin, parseNetwork } from './network.js'

/**
 * The proxies whose word about a client's address is taken: a list of addresses and networks; the number of
 * proxies a request passes through; or `'everybody'`, which lets any caller choose its address unless a proxy
 * in front overwrites the header.
 */
export type TrustedProxies = readonly string[] | 'everybody' | { readonly hops: number }

/** Whether to believe the entry written by `address`, which is `passed` proxies away from this process. */
export type IsTrusted = (address: Address, passed: number) => boolean

const FORMS = 'a list of addresses and networks, everybody, or { hops }'
/** A longer chain of your own proxies is a loop or an attack. */
export const MAX_PROXIES = 32

/** Creates the function that tells whom to believe; null if nobody is believed. */
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
