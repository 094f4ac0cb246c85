import type { DescriptorLimit, DescriptorNode, KeyNodes, Wildcard } from './config/descriptor-tree.js'
import type { Entry } from './descriptor.js'

export interface MatchedLimit {
  readonly limit: DescriptorLimit
  /** Whose budget it is: the entries, with the pattern for a value that shares one with others. */
  readonly entries: readonly Entry[]
}

/**
 * Follows the entries through the tree. A value takes precedence over a pattern, a pattern over the bare key,
 * without backtracking. Only a limit at the depth of the descriptor counts: two entries never match a limit on one.
 */
export function matchDescriptor(root: DescriptorNode, entries: readonly Entry[]): MatchedLimit | null {
  let node = root
  const named: Entry[] = []
  for (const { key, value } of entries) {
    const found = findNode(node.below.get(key), value)
    if (found === null) return null
    node = found.node
    named.push({ key, value: found.sharedAs ?? value })
  }
  return node.limit === null ? null : { limit: node.limit, entries: named }
}

function findNode(
  nodes: KeyNodes | undefined,
  value: string,
): { readonly node: DescriptorNode; readonly sharedAs: string | null } | null {
  if (nodes === undefined) return null
  const exact = nodes.byValue.get(value)
  if (exact !== undefined) return { node: exact, sharedAs: null }
  const wildcard = nodes.wildcards.find(one => matchesWildcard(one, value))
  if (wildcard !== undefined) {
    return { node: wildcard.node, sharedAs: wildcard.isShared ? wildcard.pattern : null }
  }
  return nodes.anyValue === null ? null : { node: nodes.anyValue, sharedAs: null }
}

/** Finds each part between stars at the first place after the previous one: linear, whatever the value. */
function matchesWildcard({ pattern }: Wildcard, value: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop() ?? ''
  if (value.length < first.length + last.length) return false
  if (!value.startsWith(first) || !value.endsWith(last)) return false
  const end = value.length - last.length
  let from = first.length
  for (const part of rest) {
    const at = value.indexOf(part, from)
    if (at < 0 || at + part.length > end) return false
    from = at + part.length
  }
  return true
}
