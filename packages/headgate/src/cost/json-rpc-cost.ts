/**
 * Units that a JSON-RPC request takes, from its parsed body: one for every call in it, notifications and what is none
 * included; at least 1.
 *
 * @example
 * app.post('/rpc', express.json(), rateLimit({ limiter, policy: 'rpc', cost: req => jsonRpcCost(req.body) }))
 */
export function jsonRpcCost(body: unknown): number {
  return Array.isArray(body) ? Math.max(1, body.length) : 1
}
