import { createClientAddress, createLimiter, type HeaderOptions, type Limiter, type Store } from 'headgate'
import { type Charge, type Config, parseUpstream, type StoreFailure, type Upstream } from 'headgate/config'

/** What requests are answered by until the next configuration: replaced whole, never changed. */
export interface Serving {
  readonly config: Config
  readonly limiter: Limiter<string, string>
  /** What a request is charged to. */
  readonly rule: Charge & { readonly onStoreFailure?: StoreFailure }
  readonly upstream: Upstream
  readonly headers: HeaderOptions
  /** The client's address, from the peer's and its `X-Forwarded-For`. */
  readonly clientAddress: ReturnType<typeof createClientAddress>
}

/**
 * Makes what a configuration stands for, over a store that outlives it: what subjects have used is kept. `upstream`
 * takes the place of the configuration's.
 */
export function createServing(config: Config, store: Store, upstream: Upstream | null): Serving {
  const { onStoreFailure } = config
  const target = upstream ?? parseUpstream(config.upstream)
  if (target === null) throw new Error('upstream: expected one in the policy file; got none')
  return {
    config,
    limiter: createLimiter({
      store,
      tiers: config.tiers,
      policies: Object.fromEntries(
        Object.entries(config.policies).map(([name, { limits }]) => [name, limits]),
      ),
    }),
    rule: { ...config.default, ...(onStoreFailure !== undefined && { onStoreFailure }) },
    upstream: target,
    headers: config.headers === undefined ? {} : { style: config.headers },
    clientAddress: createClientAddress({ trustedProxies: config.trustedProxies }),
  }
}
