/**
 * Finds sources of type `internal` that believe addresses of trusted proxies. A proxy that does not name its client
 * would lend its own address to whoever it forwards for, and one in a network that anybody may claim is no proof.
 */
import { overlaps, parseNetwork } from '../subject/network.js'
import type { TrustedProxies } from '../subject/trusted-proxies.js'
import type { Warn } from './config-error.js'
import type { ReadFile } from './file/policy-file.js'

export function findInternalOfProxy(file: ReadFile, warn: Warn): void {
  const { trustedProxies } = file
  if (trustedProxies === undefined) return
  for (const [index, source] of (file.identify ?? []).entries()) {
    if (source?.source !== 'internal' || source.from === 'everybody') continue
    const shared = source.from.find(network => isProxy(network, trustedProxies))
    if (shared === undefined) continue
    warn(
      ['identify', index, 'internal', 'from'],
      'WARN_HEADGATE_INTERNAL_OF_PROXY',
      `${shared} is also in trustedProxies: a client behind a proxy that does not name it would be one of your services; list the addresses of the services alone`,
    )
  }
}

function isProxy(network: string, trustedProxies: TrustedProxies): boolean {
  if (trustedProxies === 'everybody') return true
  if (!Array.isArray(trustedProxies)) return false
  const believed = parseNetwork(network)
  return trustedProxies.some((proxy: string) => overlaps(believed, parseNetwork(proxy)))
}
