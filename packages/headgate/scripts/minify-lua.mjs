/**
 * Shortens Lua without changing what it does: removes comments and blanks, and replaces the sources' own names by short ones.
 *
 * A name gets the same short name wherever it is used, as a variable, a field or a key, in every script. So scopes do not
 * matter: different names stay different, and equal names stay equal.
 */

const TOKEN =
  /--.*|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\d(?:\w|\.(?!\.))*|[A-Za-z_]\w*|\.\.\.?|[=~<>]=|\[=*\[|\S/g
const NAME = /^[A-Za-z_]\w*$/
const KEYWORDS = new Set(
  'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(
    ' ',
  ),
)
/** Fields that Redis sets or reads in a reply. */
const OF_REDIS = ['err', 'ok']

function tokensOf(line) {
  const tokens = line.match(TOKEN) ?? []
  if (tokens.at(-1)?.startsWith('--')) tokens.pop()
  const strange = tokens.find(token => /^(?:\[=*\[|['"])$/.test(token))
  if (strange !== undefined) throw new Error(`cannot shorten ${strange} in: ${line}`)
  return tokens
}

/** The names of a list such as `a, b, c` that begins at `from`. */
function namesAt(tokens, from) {
  const names = []
  for (let at = from; NAME.test(tokens[at] ?? '') && !KEYWORDS.has(tokens[at]); at += 2) {
    names.push(tokens[at])
    if (tokens[at + 1] !== ',') break
  }
  return names
}

/** Returns the names that one line declares: locals, functions, parameters and loop variables. */
function declaredIn(tokens) {
  return tokens.flatMap((token, at) => {
    if (token === 'local') return namesAt(tokens, tokens[at + 1] === 'function' ? at + 2 : at + 1)
    if (token === 'for') return namesAt(tokens, at + 1)
    if (token === 'function') return namesAt(tokens, tokens.indexOf('(', at) + 1)
    return []
  })
}

/** Short names in their order: a, b, … Z, aa, ab, … */
function* shortNames(taken) {
  const letters = [...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ']
  for (const first of ['', ...letters]) {
    for (const last of letters) {
      const name = first + last
      if (!taken.has(name) && !KEYWORDS.has(name)) yield name
    }
  }
}

/** The short name of each name, the shortest for the commonest. */
function shortNamesFor(lines) {
  const counts = new Map()
  const declared = new Set()
  const ofLibraries = new Set(OF_REDIS)
  for (const tokens of lines) for (const name of declaredIn(tokens)) declared.add(name)
  for (const tokens of lines) {
    for (const [at, token] of tokens.entries()) {
      if (!NAME.test(token) || KEYWORDS.has(token)) continue
      counts.set(token, (counts.get(token) ?? 0) + 1)
      if (tokens[at - 1] === '.' && !declared.has(tokens[at - 2])) ofLibraries.add(token)
    }
  }
  const isOurs = name => declared.has(name) && !ofLibraries.has(name)
  const ours = [...counts.keys()]
    .filter(isOurs)
    .sort((a, b) => counts.get(b) - counts.get(a) || (a < b ? -1 : 1))
  const short = shortNames(new Set([...counts.keys()].filter(name => !isOurs(name))))
  return new Map(ours.map(name => [name, short.next().value]))
}

/** Whether two tokens need a blank between them. */
function needBlank(left, right) {
  return (
    (/\w$/.test(left) && /^\w/.test(right)) ||
    (/^\d/.test(left) && right.startsWith('.')) ||
    left + right === '--'
  )
}

/**
 * Shortens the lines of all scripts in the same way: a function from a line of them to a shorter one, empty where the
 * line says nothing.
 */
export function createMinifier(allLines) {
  const short = shortNamesFor(allLines.map(tokensOf))
  return line => {
    let text = ''
    let last = ''
    for (const token of tokensOf(line)) {
      text += (needBlank(last, token) ? ' ' : '') + (short.get(token) ?? token)
      last = token
    }
    return text
  }
}
