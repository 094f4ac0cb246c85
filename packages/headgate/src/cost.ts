/** What a request costs by what its body asks for: GraphQL and JSON-RPC. */
export { graphqlCost } from './cost/graphql-cost.js'
export { jsonRpcCost } from './cost/json-rpc-cost.js'
