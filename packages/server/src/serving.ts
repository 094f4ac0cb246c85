import { createClientAddress } from 'headgate'
import { type Config, parseUpstream, type Upstream } from 'headgate/config'

/** What requests are forwarded by until the next configuration: replaced whole, never changed. */
export interface Serving {
  readonly upstream: Upstream
  /** The client's address, from the peer's and its `X-Forwarded-For`. */
  readonly clientAddress: ReturnType<typeof createClientAddress>
}

/** Makes what a configuration stands for. `upstream` takes the place of the configuration's. */
export function createServing(config: Config, upstream: Upstream | null): Serving {
  const target = upstream ?? parseUpstream(config.upstream)
  if (target === null) throw new Error('upstream: expected one in the policy file; got none')
  return {
    upstream: target,
    clientAddress: createClientAddress({ trustedProxies: config.trustedProxies }),
  }
}
