/**
 * Units that a GraphQL request takes: one for every field its operation begins with. A request of a thousand aliases is a
 * thousand calls to whoever resolves them, and so is a batch of a thousand requests in one array.
 */
import { type CountedFields, type Definition, readDefinitions } from './graphql-definitions.js'
import { GraphqlTokens } from './graphql-tokens.js'

export interface GraphqlCostOptions {
  /** The fields that count: those an operation begins with (`root`, the default), or every one (`all`). */
  readonly fields?: CountedFields
  /** Units of a request that names a stored document instead of sending one. Default 1. */
  readonly stored?: number
}

/** How requests name a document that the server has. */
const STORED_NAMES = ['id', 'documentId', 'doc_id', 'extensions']

/** The highest cost there is: a request of more is refused by every limit. */
const MAX_COST = 2 ** 32 - 1

/**
 * Units that a GraphQL request takes, from its parsed body (a request, or an array of them) or the text of its document; at
 * least 1. Fragments count as often as they are spread, and no directive makes a field free. Of several operations the one
 * that `operationName` names counts, or the dearest. A document that cannot be read costs as many as it has names, and more than
 * any limit has where it spreads fragments. Takes time in proportion to the length of the text, whatever it says, and never throws.
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
  // Which of the two a server runs is not known here.
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

/** Fields of every definition with those of the fragments it spreads. One that spreads itself has no end. */
function totalsOf(definitions: readonly Definition[]): ReadonlyMap<Definition, number> {
  const fragments = new Map<string, Definition>()
  for (const one of definitions) if (one.kind === 'fragment') fragments.set(one.name, one)
  const totals = new Map<Definition, number>()
  const begun = new Set<Definition>()
  // Depth first with a list in place of recursion: how deep fragments lead is a stranger's choice.
  const pending = [...definitions]
  for (let definition = pending.at(-1); definition !== undefined; definition = pending.at(-1)) {
    // A fragment may be pending as often as others spread it: its own spreads are looked at twice, however often that is.
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

/** As many as there are names: no server finds more fields, unless fragments are spread, of which there is no telling. */
function costUnread(document: string): number {
  const tokens = new GraphqlTokens(document)
  let names = 0
  for (; tokens.token !== 'end'; tokens.advance()) {
    if (tokens.token === '...') return MAX_COST
    if (tokens.token === 'name') names++
  }
  return Math.max(1, names)
}
