import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  parseDocument,
} from 'yaml'
import { type Complaint, type ConfigIssue, type Path, toIssue } from '../config-error.js'
import { type LocatedText, MAX_DEPTH, positionIn } from './located-text.js'

const MAX_ALIAS_EXPANSION = 100
const MAX_ISSUES = 20

/** Parses one YAML 1.2 document. Duplicate keys, custom tags and aliases without an anchor are issues. */
export function readYaml(text: string): LocatedText {
  const lineCounter = new LineCounter()
  const issues: ConfigIssue[] = []
  const positionOf = (offset: number) => {
    const { line, col } = lineCounter.linePos(offset)
    return { line, column: col }
  }
  const add: Add = (offset, complaint, path = []) => {
    if (issues.length < MAX_ISSUES) issues.push(toIssue(path, complaint, positionOf(offset)))
  }

  const hostile = findHostileYaml(text)
  if (hostile !== null) {
    const place = positionIn(text, hostile.offset)
    return { value: null, issues: [toIssue([], hostile.complaint, place)], locator: async () => () => place }
  }

  // The parser's own uniqueKeys compares every key with every other; ours uses one Set per map.
  const document = parseDocument(text, { lineCounter, uniqueKeys: false, prettyErrors: false, merge: false })
  for (const { code, message, pos } of [...document.errors, ...document.warnings]) {
    const several = code === 'MULTIPLE_DOCS'
    add(
      pos[0],
      several ? { expected: 'one document', got: 'more' } : { expected: 'valid YAML', got: message },
    )
  }
  const anchors = new Map<string, Node>()
  if (issues.length === 0) checkNode(document.contents, [], { anchors, add })
  return {
    value: issues.length === 0 ? toPlain(document, add) : null,
    issues,
    locator: async () => (path, at) => positionOf(offsetOf(document, anchors, path, at)),
  }
}

type Add = (offset: number, complaint: Complaint, path?: Path) => void

/** Aliases have been counted, but an alias that contains others multiplies. */
function toPlain(document: Document, add: Add): unknown {
  try {
    return document.toJS({ mapAsMap: true, maxAliasCount: MAX_ALIAS_EXPANSION })
  } catch (error) {
    add(0, { expected: 'aliases that expand to a reasonable size', got: (error as Error).message })
    return null
  }
}

interface Walk {
  /** The anchors seen so far. The parser would search for each from the top of the text. */
  readonly anchors: Map<string, Node>
  readonly add: Add
}

function checkNode(node: unknown, path: Path, walk: Walk): void {
  const { anchors, add } = walk
  if (isAlias(node)) {
    if (!anchors.has(node.source))
      add(node.range?.[0] ?? 0, { expected: `an anchor &${node.source} above its use`, got: 'none' }, path)
    return
  }
  if (isNode(node) && node.anchor !== undefined) anchors.set(node.anchor, node)
  if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) checkNode(item, [...path, index], walk)
  } else if (isMap(node)) {
    const seen = new Set<unknown>()
    for (const { key, value } of node.items) {
      const name = isScalar(key) ? key.value : key
      const itemPath = [...path, String(name)]
      if (seen.has(name)) add(startOf(key) ?? 0, { expected: 'each key once', got: 'it again' }, itemPath)
      seen.add(name)
      checkNode(key, itemPath, walk)
      checkNode(value, itemPath, walk)
    }
  }
}

function offsetOf(
  document: Document,
  anchors: ReadonlyMap<string, Node>,
  path: Path,
  at: 'key' | 'value',
): number {
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  for (const [index, part] of path.entries()) {
    const container: Node | undefined = isAlias(node)
      ? anchors.get(node.source)
      : isNode(node)
        ? node
        : undefined
    if (isSeq(container)) {
      node = container.items[Number(part)]
    } else if (isMap(container)) {
      const pair = container.items.find(({ key }) => String(isScalar(key) ? key.value : key) === String(part))
      if (pair === undefined) return offset
      offset = startOf(pair.key) ?? offset
      if (at === 'key' && index === path.length - 1) return offset
      node = pair.value
    } else {
      return offset
    }
    offset = startOf(node) ?? offset
  }
  return offset
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined
}

/**
 * Rejects YAML that is cheap to write and expensive to read, before it is parsed.
 *
 * The parser recurses at every level, so a few thousand brackets end the process with no error to catch. It also
 * searches for an alias's anchor from the top of the file each time. The lexer does neither, so its tokens are counted.
 */

const MAX_ALIASES = 100
/** A block level costs at least one column of indentation or one indicator. */
const MAX_BLOCK_DEPTH = 2 * MAX_DEPTH
const SCALAR_FOLLOWS = '\u001f'
const MARKS = ['\u0002', '\u0018', SCALAR_FOLLOWS]

/** Finds what makes a text dangerous to parse, and where; null if it is safe. */
function findHostileYaml(text: string): { offset: number; complaint: Complaint } | null {
  const line = { started: false, depth: 0 }
  let flowDepth = 0
  let aliases = 0
  let offset = 0
  let isScalar = false
  for (const token of new Lexer().lex(text)) {
    if (MARKS.includes(token)) {
      isScalar = token === SCALAR_FOLLOWS
      continue
    }
    if (token.startsWith('\n') || token.startsWith('\r')) {
      line.started = false
      line.depth = 0
    } else {
      if (!isScalar) {
        if (token === '[' || token === '{') flowDepth++
        else if (token === ']' || token === '}') flowDepth = Math.max(0, flowDepth - 1)
        else if (token.startsWith('*')) aliases++
        else if (flowDepth === 0) line.depth += blockDepth(token, line.started)
      }
      line.started = true
    }
    if (flowDepth > MAX_DEPTH || line.depth > MAX_BLOCK_DEPTH) {
      return { offset, complaint: { expected: `at most ${MAX_DEPTH} levels`, got: 'more' } }
    }
    if (aliases > MAX_ALIASES) {
      return { offset, complaint: { expected: `at most ${MAX_ALIASES} aliases`, got: 'more' } }
    }
    isScalar = false
    offset += token.length
  }
  return null
}

/** Returns how many levels a token outside brackets can add on its line. */
function blockDepth(token: string, lineStarted: boolean): number {
  if (token === '-' || token === '?' || token === ':') return 1
  return !lineStarted && token.startsWith(' ') ? token.length : 0
}
