/**
 * Reads JSON with `JSON.parse`, which drops positions and silently takes the last of two equal keys. A text with a
 * problem is read again as YAML, which all JSON is, to find its place; without the package `yaml` it has none.
 */
import { type Complaint, type ConfigIssue, toIssue } from '../config-error.js'
import { type LocatedText, MAX_DEPTH, positionIn } from './located-text.js'

/** Parses a JSON text. */
export async function readJson(text: string): Promise<LocatedText> {
  const nowhere = async () => () => null
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { value: null, issues: [syntaxIssue(text, (error as Error).message)], locator: nowhere }
  }
  const locator = async () => (await readAsYaml(text))?.locator() ?? nowhere()
  const complaint = objectionTo(value, text)
  if (complaint === null) return { value, issues: [], locator }
  const placed = (await readAsYaml(text))?.issues ?? []
  return { value, issues: placed.length > 0 ? placed : [toIssue([], complaint, null)], locator }
}

async function readAsYaml(text: string): Promise<LocatedText | null> {
  const yaml = await import('./read-yaml.js').catch(() => null)
  return yaml?.readYaml(text) ?? null
}

/** Objects to too many levels, and to texts that write more keys than were kept. */
function objectionTo(value: unknown, text: string): Complaint | null {
  let keys = 0
  let level = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return { expected: `at most ${MAX_DEPTH} levels`, got: 'more' }
    const containers = level.filter(item => typeof item === 'object' && item !== null) as object[]
    for (const item of containers) if (!Array.isArray(item)) keys += Object.keys(item).length
    level = containers.flatMap(item => Object.values(item))
  }
  // Between two quotes is a text, unless they are escaped; a colon after one makes it a key.
  const outside = text
    .replace(/\\./g, '')
    .split('"')
    .filter((_, index) => index % 2 === 0)
  const written = outside.filter(part => part.trimStart().startsWith(':')).length
  return keys === written ? null : { expected: 'each key once', got: 'one of them again' }
}

/** What `JSON.parse` says itself differs between engines, and may quote a secret. */
function syntaxIssue(text: string, message: string): ConfigIssue {
  const offset = offsetOf(text, message)
  if (offset === null) return toIssue([], { expected: 'valid JSON', got: 'something else' }, null)
  const got = offset < text.length ? JSON.stringify(text[offset]) : 'the end of the text'
  return toIssue([], { expected: 'valid JSON', got }, positionIn(text, offset))
}

const UNEXPECTED = 'Unexpected token'

/** Returns the offset of a syntax error; null where the engine does not say it. */
function offsetOf(text: string, message: string): number | null {
  const [, told] = / at position (\d+)/.exec(message) ?? []
  if (told !== undefined) return Number(told)
  if (message.startsWith('Unexpected end')) return text.length
  if (!message.startsWith(UNEXPECTED)) return null
  // V8 does not say where an unexpected token is: it ends the shortest beginning of the text that has one.
  let from = 0
  let to = text.length
  while (from < to) {
    const middle = (from + to) >> 1
    if (hasUnexpected(text.slice(0, middle + 1))) to = middle
    else from = middle + 1
  }
  return from
}

function hasUnexpected(text: string): boolean {
  try {
    JSON.parse(text)
    return false
  } catch (error) {
    return (error as Error).message.startsWith(UNEXPECTED)
  }
}
