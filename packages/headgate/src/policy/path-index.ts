/**
 * Indexes entries of the policy file by path. The index is a trie of segments, so that a search takes steps for the
 * segments of the path, not for the entries.
 */
import { Candidates, type Entry, type Lists, type RuleQuery } from './candidates.js'
import type { PathPattern } from './path-pattern.js'
import { foldCase, spellingsOf } from './path-readings.js'

/**
 * One way in which a server reads a path: the segments, whether case matters, and whether parameters may be empty.
 */
export interface PathView {
  readonly segments: readonly string[]
  readonly ignoresCase: boolean
  readonly emptyParameters: boolean
}

class Node<Value> {
  literals: Map<string, Node<Value>> | null = null
  parameter: Node<Value> | null = null
  /** Entries whose pattern ends here, and those that accept any rest from here. */
  closed: Candidates<Value> | null = null
  open: Candidates<Value> | null = null

  /** `firstOrder`: the lowest position in the file of any entry here or below. */
  constructor(readonly firstOrder: number) {}
}

/** Entries with and without a path, added in file order and searched by requests. */
export class PathIndex<Value> {
  /**
   * One trie for servers that ignore case and one for those that do not; the same one while no pattern has a
   * capital.
   */
  private readonly folded = new Node<Value>(0)
  private readonly exact: Node<Value>
  private readonly pathless = new Candidates<Value>()
  private size = 0

  /** `hasCapitals`: whether case sensitivity makes a difference to any pattern. */
  constructor(hasCapitals: boolean) {
    this.exact = hasCapitals ? new Node(0) : this.folded
  }

  add(pattern: PathPattern | null, lists: Lists, value: Value): void {
    const entry = { order: this.size++, lists, value }
    if (pattern === null) {
      this.pathless.add(entry)
      return
    }
    insert(this.folded, pattern, entry, foldCase)
    if (this.exact !== this.folded) insert(this.exact, pattern, entry, asItIs)
  }

  get isEmpty(): boolean {
    return this.size === 0
  }

  /** Returns the first entry for a request. Without a path, only entries that need none can match. */
  find(view: PathView | null, asked: RuleQuery): Entry<Value> | null {
    const best = this.pathless.first(asked, null)
    if (view === null) return best
    return search(view.ignoresCase ? this.folded : this.exact, { view, asked }, 0, best)
  }

  /** Returns the entry that hides every later one with this pattern and these lists, or null. */
  cover(pattern: PathPattern | null, lists: Lists): Entry<Value> | null {
    const pathless = this.pathless.cover(lists)
    return pathless ?? (pattern === null ? null : findCover(this.folded, pattern, lists, 0))
  }
}

interface Look {
  readonly view: PathView
  readonly asked: RuleQuery
}

/**
 * Returns the first entry at a node or below it that precedes `best` in the file, or else `best`. Skips nodes whose
 * entries all come after it.
 */
function search<Value>(
  node: Node<Value>,
  look: Look,
  depth: number,
  best: Entry<Value> | null,
): Entry<Value> | null {
  if (best !== null && node.firstOrder >= best.order) return best
  const { asked } = look
  const { segments, emptyParameters } = look.view
  let found = node.open === null ? best : node.open.first(asked, best)
  if (depth === segments.length) return node.closed === null ? found : node.closed.first(asked, found)
  const segment = segments[depth] as string
  const literal = node.literals?.get(segment)
  if (literal !== undefined) found = search(literal, look, depth + 1, found)
  if (node.parameter === null || (segment === '' && !emptyParameters)) return found
  return search(node.parameter, look, depth + 1, found)
}

function insert<Value>(
  top: Node<Value>,
  { segments, open, slashAtEnd }: PathPattern,
  entry: Entry<Value>,
  spell: (literal: string) => string,
): void {
  let node = top
  for (const segment of segments) {
    if (segment === null) {
      node.parameter ??= new Node(entry.order)
      node = node.parameter
    } else if (segment.includes('%')) node = childUnderAll(node, spellingsOf(segment).map(spell), entry.order)
    else node = childOf(node, spell(segment), entry.order)
  }
  if (open) {
    node.open ??= new Candidates()
    node.open.add(entry)
    return
  }
  for (const end of slashAtEnd ? [node, childOf(node, '', entry.order)] : [node]) {
    end.closed ??= new Candidates()
    end.closed.add(entry)
  }
}

function asItIs(literal: string): string {
  return literal
}

function childOf<Value>(node: Node<Value>, literal: string, order: number): Node<Value> {
  node.literals ??= new Map()
  let child = node.literals.get(literal)
  if (child === undefined) {
    child = new Node(order)
    node.literals.set(literal, child)
  }
  return child
}

/** Returns the node of a literal that has several spellings, reachable under each of them. */
function childUnderAll<Value>(node: Node<Value>, spellings: readonly string[], order: number): Node<Value> {
  const known = spellings.find(spelling => node.literals?.has(spelling))
  const child = childOf(node, known ?? spellings[0] ?? '', order)
  for (const spelling of spellings) if (!node.literals?.has(spelling)) node.literals?.set(spelling, child)
  return child
}

/** A parameter covers a literal, but a literal never covers a parameter. */
function findCover<Value>(
  node: Node<Value>,
  pattern: PathPattern,
  lists: Lists,
  depth: number,
): Entry<Value> | null {
  const open = node.open?.cover(lists) ?? null
  if (open !== null) return open
  if (depth === pattern.segments.length) return pattern.open ? null : (node.closed?.cover(lists) ?? null)
  const segment = pattern.segments[depth]
  const literal =
    typeof segment === 'string' ? node.literals?.get(foldCase(spellingsOf(segment)[0] ?? '')) : null
  const found = literal == null ? null : findCover(literal, pattern, lists, depth + 1)
  if (found !== null) return found
  return node.parameter === null ? null : findCover(node.parameter, pattern, lists, depth + 1)
}
