/**
 * Returns the cost of a JSON-RPC request from its parsed body: one unit for every entry of a batch, at least 1.
 *
 * @example
 * app.post('/rpc', express.json(), rateLimit({ limiter, policy: 'rpc', cost: req => jsonRpcCost(req.body) }))
 */
export function jsonRpcCost(body: unknown): number {
  return Array.isArray(body) ? Math.max(1, body.length) : 1
}
