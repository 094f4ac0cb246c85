/**
 * The cost of a GraphQL request: one unit for every root field of its operation. A request with a thousand aliases
 * makes a thousand resolver calls, and so does a batch of a thousand requests in one array.
 */
import { type CountedFields, type Definition, readDefinitions } from './graphql-definitions.js'
import { GraphqlTokens } from './graphql-tokens.js'

export interface GraphqlCostOptions {
  /** The fields that count: those at the root of an operation (`root`, the default), or every one (`all`). */
  readonly fields?: CountedFields
  /** Units of a request that names a stored document instead of sending one. Default 1. */
  readonly stored?: number
}

/** The fields in which requests name a stored document. */
const STORED_NAMES = ['id', 'documentId', 'doc_id', 'extensions']

/** The highest cost there is; every limit rejects it. */
const MAX_COST = 2 ** 32 - 1

/**
 * Returns the cost of a GraphQL request, at least 1, from its parsed body (a request or an array of them) or the text of
 * its document. Fragments count as often as they are spread, and no directive makes a field free. Of several operations
 * the one named by `operationName` counts, or else the most expensive. A document that cannot be parsed costs as much as
 * it has names, and the maximum if it spreads fragments. Takes time linear in the length of the text, and never throws.
 *
 * @example
 * app.post('/graphql', express.json(), rateLimit({ limiter, policy: 'graphql', cost: req => graphqlCost(req.body) }))
 */
export function graphqlCost(body: unknown, options: GraphqlCostOptions = {}): number {
  if (!Array.isArray(body)) return costOfRequest(body, options)
  let cost = 0
  for (const request of body) cost = Math.min(MAX_COST, cost + costOfRequest(request, options))
  return Math.max(1, cost)
}

function costOfRequest(request: unknown, { fields = 'root', stored = 1 }: GraphqlCostOptions): number {
  if (typeof request === 'string') return costOfDocument(request, null, fields)
  const given = (request ?? {}) as Readonly<Record<string, unknown>>
  const { query, operationName } = given
  if (typeof query !== 'string') return stored
  const cost = costOfDocument(query, typeof operationName === 'string' ? operationName : null, fields)
  // We cannot know which of the two a server runs.
  return STORED_NAMES.some(name => given[name] !== undefined) ? Math.max(cost, stored) : cost
}

function costOfDocument(document: string, operationName: string | null, fields: CountedFields): number {
  const definitions = readDefinitions(document, fields)
  if (definitions === null) return costUnread(document)
  const operations = definitions.filter(({ kind }) => kind === 'operation')
  const named = operations.filter(({ name }) => name !== '' && name === operationName)
  const totals = totalsOf(definitions)
  const asked = named.length > 0 ? named : operations
  return asked.reduce((dearest, operation) => Math.max(dearest, totals.get(operation) ?? 1), 1)
}

/** Counts the fields of every definition, including those of the fragments it spreads. A cycle gets the maximum. */
function totalsOf(definitions: readonly Definition[]): ReadonlyMap<Definition, number> {
  const fragments = new Map<string, Definition>()
  for (const one of definitions) if (one.kind === 'fragment') fragments.set(one.name, one)
  const totals = new Map<Definition, number>()
  const begun = new Set<Definition>()
  // Depth first with an explicit stack, because an attacker chooses how deeply fragments nest.
  const pending = [...definitions]
  for (let definition = pending.at(-1); definition !== undefined; definition = pending.at(-1)) {
    // A fragment may be pending as often as others spread it, but its own spreads are walked only twice.
    if (totals.has(definition)) {
      pending.pop()
      continue
    }
    const spread = definition.spreads.flatMap(name => fragments.get(name) ?? [])
    if (!begun.has(definition)) {
      begun.add(definition)
      for (const fragment of new Set(spread)) if (!begun.has(fragment)) pending.push(fragment)
      continue
    }
    pending.pop()
    const total = spread.reduce(
      (sum, fragment) => sum + (totals.get(fragment) ?? MAX_COST),
      definition.fields,
    )
    totals.set(definition, Math.min(MAX_COST, total))
  }
  return totals
}

/** Counts the names: no server finds more fields than that, unless fragments are spread. */
function costUnread(document: string): number {
  const tokens = new GraphqlTokens(document)
  let names = 0
  for (; tokens.token !== 'end'; tokens.advance()) {
    if (tokens.token === '...') return MAX_COST
    if (tokens.token === 'name') names++
  }
  return Math.max(1, names)
}
