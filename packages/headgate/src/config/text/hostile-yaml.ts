/**
 * Refuses YAML that is cheap to write and expensive to read, before it is parsed.
 *
 * The parser recurses at every level, so a few thousand brackets end the process with no error to catch. It also
 * searches for an alias's anchor from the top of the file each time. The lexer does neither, so its tokens are counted.
 */
import { Lexer } from 'yaml'
import type { Complaint } from '../config-error.js'
import { MAX_DEPTH } from './located-text.js'

const MAX_ALIASES = 100
/** A block level costs at least one column of indentation or one indicator. */
const MAX_BLOCK_DEPTH = 2 * MAX_DEPTH
const SCALAR_FOLLOWS = '\u001f'
const MARKS = ['\u0002', '\u0018', SCALAR_FOLLOWS]

/** Finds what makes a text dangerous to parse, and where; null if it is safe. */
export function findHostileYaml(text: string): { offset: number; complaint: Complaint } | null {
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
