/** How much of a gateway one client, one connection and the upstream may take. 0 lifts a bound. */
export interface Bounds {
  /** Header fields of a request; more are 431. */
  readonly maxHeaders: number
  /** Connections from one address, or from one IPv6 /64; more are closed. Trusted proxies are not counted. */
  readonly maxClientConnections: number
  /** Requests of one client under way at once; more are 429. */
  readonly maxClientRequests: number
  /** Requests of one connection under way at once; the connection closes after the last of them. */
  readonly maxPipelined: number
  /** Requests under way at the upstream at once, each on a connection of its own; more are 503. */
  readonly maxUpstreamConnections: number
  /** Bytes a second that a request's body must come at. */
  readonly minBodyRate: number
  /** How long a body may stay below that rate. */
  readonly bodyGraceMs: number
  /** How long a client may take nothing of a response that is there for it. */
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
