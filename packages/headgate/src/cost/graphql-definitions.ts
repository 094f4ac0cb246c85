/** Parses the operations and fragments of a GraphQL document without knowing its schema. */
import { GraphqlTokens, type Token } from './graphql-tokens.js'

/** An operation or a fragment. */
export interface Definition {
  readonly kind: 'operation' | 'fragment'
  /** Empty for an unnamed operation. */
  readonly name: string
  /** The number of selected fields that count. */
  fields: number
  /** Names of the fragments it spreads, as often as they occur. */
  readonly spreads: string[]
}

/** The fields that count: those at the root of an operation, or all below them too. */
export type CountedFields = 'root' | 'all'

const OPERATIONS = ['query', 'mutation', 'subscription']
const CLOSING = { '(': ')', '[': ']', '{': '}' } as const

/** Parses the definitions of a document; null if it is malformed. Takes time linear in its length. */
export function readDefinitions(document: string, counted: CountedFields): readonly Definition[] | null {
  const tokens = new GraphqlTokens(document)
  const definitions: Definition[] = []
  while (tokens.token !== 'end') {
    const definition = readDefinition(tokens, counted)
    if (definition === null) return null
    definitions.push(definition)
  }
  return definitions
}

function readDefinition(tokens: GraphqlTokens, counted: CountedFields): Definition | null {
  // A description may precede it.
  skip(tokens, 'string')
  const head = readHead(tokens)
  if (head === null || !skipDirectives(tokens) || !skip(tokens, '{')) return null
  const definition: Definition = { ...head, fields: 0, spreads: [] }
  return readSelections(tokens, definition, counted) ? definition : null
}

function readHead(tokens: GraphqlTokens): Pick<Definition, 'kind' | 'name'> | null {
  if (tokens.token === '{') return { kind: 'operation', name: '' }
  const word = takeName(tokens)
  if (word === 'fragment') {
    const name = takeName(tokens)
    if (name === null || takeName(tokens) !== 'on' || takeName(tokens) === null) return null
    return { kind: 'fragment', name }
  }
  if (word === null || !OPERATIONS.includes(word)) return null
  const name = takeName(tokens) ?? ''
  return skipArguments(tokens) ? { kind: 'operation', name } : null
}

/** Reads to the end of the current selection set. Not recursive, because an attacker chooses how deep it goes. */
function readSelections(tokens: GraphqlTokens, definition: Definition, counted: CountedFields): boolean {
  /** For every open set, whether its fields count. */
  const open = [true]
  while (open.length > 0) {
    const counts = open.at(-1) as boolean
    if (skip(tokens, '}')) open.pop()
    else if (skip(tokens, '...')) {
      const spread = tokens.token === 'name' && tokens.text !== 'on' ? takeName(tokens) : null
      if (spread !== null && counts) definition.spreads.push(spread)
      if (spread === null && tokens.token === 'name') {
        takeName(tokens)
        if (takeName(tokens) === null) return false
      }
      if (!skipDirectives(tokens)) return false
      if (spread === null) {
        if (!skip(tokens, '{')) return false
        open.push(counts)
      }
    } else if (takeName(tokens) !== null) {
      if (counts) definition.fields++
      if (skip(tokens, ':') && takeName(tokens) === null) return false
      if (!skipArguments(tokens) || !skipDirectives(tokens)) return false
      if (skip(tokens, '{')) open.push(counted === 'all')
    } else return false
  }
  return true
}

function skipDirectives(tokens: GraphqlTokens): boolean {
  while (skip(tokens, '@')) if (takeName(tokens) === null || !skipArguments(tokens)) return false
  return true
}

/** Skips arguments in brackets, if they start here. */
function skipArguments(tokens: GraphqlTokens): boolean {
  if (!skip(tokens, '(')) return true
  const closing: Token[] = [')']
  while (closing.length > 0) {
    const { token } = tokens
    if (token === 'end') return false
    if (token === closing.at(-1)) closing.pop()
    else if (token === ')' || token === ']' || token === '}') return false
    else if (token === '(' || token === '[' || token === '{') closing.push(CLOSING[token])
    tokens.advance()
  }
  return true
}

function skip(tokens: GraphqlTokens, token: Token): boolean {
  if (tokens.token !== token) return false
  tokens.advance()
  return true
}

function takeName(tokens: GraphqlTokens): string | null {
  if (tokens.token !== 'name') return null
  const { text } = tokens
  tokens.advance()
  return text
}
