/** How much of a gateway one client, one connection and the upstream may use. 0 lifts a bound. */
export interface Bounds {
  /** Header fields of a request; more get 431. */
  readonly maxHeaders: number
  /** Connections from one address, or from one IPv6 /64; more are closed. Trusted proxies are not counted. */
  readonly maxClientConnections: number
  /** Requests of one client in flight at once; more get 429. */
  readonly maxClientRequests: number
  /** Requests of one connection in flight at once; the connection closes after the last of them. */
  readonly maxPipelined: number
  /** Requests in flight to the upstream at once, each on a connection of its own; more get 503. */
  readonly maxUpstreamConnections: number
  /** The minimum rate of a request's body, in bytes a second. */
  readonly minBodyRate: number
  /** How long a body may stay below that rate. */
  readonly bodyGraceMs: number
  /** How long a client may leave a response unread. */
  readonly responseTimeoutMs: number
}

export const DEFAULT_BOUNDS: Bounds = {
  maxHeaders: 100,
  maxClientConnections: 256,
  maxClientRequests: 128,
  maxPipelined: 16,
  maxUpstreamConnections: 512,
  minBodyRate: 256,
  bodyGraceMs: 10_000,
  responseTimeoutMs: 30_000,
}
