import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
} from 'yaml'
import { type ConfigProblem, formatPath, type Path } from './config-problem.js'
import { findHostileYaml } from './hostile-yaml.js'

/** A YAML text as plain values. Maps are `Map`s, so that no key can reach an object's prototype. */
export interface YamlText {
  readonly value: unknown
  /** What is wrong with the YAML itself; `value` means nothing if there is any. */
  readonly problems: readonly ConfigProblem[]
  /** Where a path stands; where it does not exist, what would contain it. */
  locate(path: Path, at: 'key' | 'value'): { line: number; column: number }
}

const MAX_ALIAS_EXPANSION = 100
const MAX_PROBLEMS = 20

/** Reads one YAML 1.2 document. Duplicate keys, tags of one's own and aliases without an anchor are problems. */
export function readYaml(text: string): YamlText {
  const lineCounter = new LineCounter()
  const problems: ConfigProblem[] = []
  const positionOf = (offset: number) => {
    const { line, col } = lineCounter.linePos(offset)
    return { line, column: col }
  }
  const add = (offset: number, message: string, path: Path = []) => {
    if (problems.length < MAX_PROBLEMS) {
      problems.push({ ...positionOf(offset), path: formatPath(path), message })
    }
  }

  const hostile = findHostileYaml(text)
  if (hostile !== null) {
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', end + 1))
      lineCounter.addNewLine(end + 1)
    lineCounter.lineStarts.unshift(0)
    add(hostile.offset, hostile.message)
    return { value: null, problems, locate: () => positionOf(0) }
  }

  // uniqueKeys of the parser compares every key with every other; ours is one Set a map.
  const document = parseDocument(text, { lineCounter, uniqueKeys: false, prettyErrors: false, merge: false })
  for (const { code, message, pos } of [...document.errors, ...document.warnings]) {
    add(pos[0], code === 'MULTIPLE_DOCS' ? 'expected one document; got more' : message)
  }
  if (problems.length === 0) checkNode(document, document.contents, [], add)
  return {
    value: problems.length === 0 ? toPlain(document, add) : null,
    problems,
    locate: (path, at) => positionOf(offsetOf(document, path, at)),
  }
}

type Add = (offset: number, message: string, path?: Path) => void

/** Aliases were counted, but one that contains others multiplies. */
function toPlain(document: Document, add: Add): unknown {
  try {
    return document.toJS({ mapAsMap: true, maxAliasCount: MAX_ALIAS_EXPANSION })
  } catch (error) {
    add(0, `expected aliases that expand to a reasonable size; got: ${(error as Error).message}`)
    return null
  }
}

function checkNode(document: Document, node: unknown, path: Path, add: Add): void {
  if (isAlias(node) && node.resolve(document) === undefined) {
    add(node.range?.[0] ?? 0, `expected an anchor &${node.source} above its use; got none`, path)
  } else if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) checkNode(document, item, [...path, index], add)
  } else if (isMap(node)) {
    const seen = new Set<unknown>()
    for (const { key, value } of node.items) {
      const name = isScalar(key) ? key.value : key
      const itemPath = [...path, String(name)]
      if (seen.has(name)) add(startOf(key) ?? 0, 'expected each key once; got it again', itemPath)
      seen.add(name)
      checkNode(document, value, itemPath, add)
    }
  }
}

function offsetOf(document: Document, path: Path, at: 'key' | 'value'): number {
  let node: unknown = document.contents
  let offset = startOf(node) ?? 0
  for (const [index, part] of path.entries()) {
    const container: Node | undefined = isAlias(node)
      ? node.resolve(document)
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
