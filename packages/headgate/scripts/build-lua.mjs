/**
 * Builds src/store/redis/scripts.gen.ts from lua/*.lua: includes and fragments in their places, SHA-1 computed. Every file of
 * lua/include that says `@algorithm <number> <maker>` is one more algorithm, wherever a script says `@algorithms`.
 * `--check` only says whether the file is up to date; `--from=<folder>/ --to=<file>` builds another folder.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createMinifier } from './minify-lua.mjs'

const option = name => process.argv.find(arg => arg.startsWith(`--${name}=`))?.slice(name.length + 3)
const luaDir = new URL(option('from') ?? '../lua/', import.meta.url)
const target = new URL(option('to') ?? '../src/store/redis/scripts.gen.ts', import.meta.url)
const INCLUDE = /^\s*-- @include (\w+)(?:\((\w+)\))?$/
const INLINE = /^\s*-- @inline ([\w.]+)$/
const FRAGMENT = /^-- @fragment ([\w.]+)$/
const ALGORITHMS = /^\s*-- @algorithms$/
const ALGORITHM = /^-- @algorithm (\d+) (\w+)$/
/** The placeholder that `@include name(word)` replaces by the word. */
const PLACEHOLDER = /ALGORITHM/g

/** Every fragment of lua/include by its name: the lines from `@fragment` to the next one or the end of the file. */
function readFragments() {
  const fragments = new Map()
  for (const file of readdirSync(new URL('include/', luaDir)).sort()) {
    let lines = []
    for (const line of linesOf(`include/${file}`)) {
      const name = FRAGMENT.exec(line)?.[1]
      if (name === undefined) {
        lines.push(line)
        continue
      }
      if (fragments.has(name)) throw new Error(`two fragments are called ${name}`)
      lines = []
      fragments.set(name, lines)
    }
  }
  return fragments
}

/** The algorithms that are functions on a state, each with its number on the wire, in that order. */
function readAlgorithms() {
  const found = readdirSync(new URL('include/', luaDir)).flatMap(file =>
    linesOf(`include/${file}`).flatMap(line => {
      const [, number, maker] = ALGORITHM.exec(line) ?? []
      return number === undefined ? [] : [{ number: Number(number), maker, path: `include/${file}` }]
    }),
  )
  return found.sort((one, other) => one.number - other.number)
}

function linesOf(path) {
  return readFileSync(new URL(path, luaDir), 'utf8').split('\n')
}

/** Returns the lines of a file up to its first fragment. */
function bodyOf(path) {
  const lines = linesOf(path)
  const end = lines.findIndex(line => FRAGMENT.test(line))
  return end === -1 ? lines : lines.slice(0, end)
}

/**
 * Puts together one script as a tree: a part is a list of lines and of parts. A file is included once, a fragment as often
 * as it is named.
 */
function createFlattener(fragments, algorithms) {
  const included = new Set()

  function flatten(name, lines, chain) {
    const parts = lines.flatMap(line => {
      const include = INCLUDE.exec(line)
      if (include !== null) return flattenFile(`include/${include[1]}.lua`, chain, include[2]) ?? []
      if (ALGORITHMS.test(line)) return flattenAlgorithms(chain)
      const inline = INLINE.exec(line)?.[1]
      if (inline !== undefined) return flattenFragment(inline, chain)
      return /^\s*(--.*)?$/.test(line) ? [] : [line.trim()]
    })
    return { name, parts }
  }

  function flattenFile(path, parents, word) {
    const chain = longer(parents, path)
    if (included.has(path)) return undefined
    included.add(path)
    const lines = bodyOf(path)
    return flatten(
      path,
      word === undefined ? lines : lines.map(line => line.replace(PLACEHOLDER, word)),
      chain,
    )
  }

  function flattenAlgorithms(chain) {
    const files = algorithms.map(({ path }) => flattenFile(path, chain)).filter(isPart)
    const makers = algorithms.map(({ number, maker }) => `[${number}] = ${maker}`)
    return [...files, `local other_makers = { ${makers.join(', ')} }`]
  }

  function flattenFragment(name, parents) {
    const lines = fragments.get(name)
    if (lines === undefined) throw new Error(`no fragment is called ${name}`)
    return flatten(name, lines, longer(parents, name))
  }

  return flattenFile
}

function longer(chain, next) {
  if (chain.includes(next)) throw new Error(`include cycle: ${[...chain, next].join(' -> ')}`)
  return [...chain, next]
}

function sha1(text) {
  return createHash('sha1').update(text).digest('hex')
}

const isPart = part => typeof part === 'object'

/** Returns every line of a part and of its parts. */
function linesIn({ parts }) {
  return parts.flatMap(part => (isPart(part) ? linesIn(part) : [part]))
}

function textOf(part) {
  return linesIn(part).join('\n')
}

/** A part whose lines were shortened. */
function shortened({ name, parts }, shorten) {
  return { name, parts: parts.map(part => (isPart(part) ? shortened(part, shorten) : shorten(part))) }
}

function buildScripts() {
  const names = readdirSync(luaDir).filter(file => file.endsWith('.lua'))
  const fragments = readFragments()
  const trees = names.sort().map(file => createFlattener(fragments, readAlgorithms())(file, []))
  const shorten = createMinifier(trees.flatMap(linesIn))
  return trees.map(tree => {
    const short = shortened(tree, shorten)
    return { name: tree.name.slice(0, -'.lua'.length), tree: short, sha: sha1(textOf(short)) }
  })
}

/**
 * Writes scripts as template literals. A part used in several places is written once, as a constant. Two parts are the same if
 * their texts are.
 */
function createWriter(trees) {
  const uses = new Map()
  const constants = new Map()
  const declarations = []

  function count({ parts }) {
    for (const part of parts.filter(isPart)) {
      const text = textOf(part)
      uses.set(text, (uses.get(text) ?? 0) + 1)
      // A constant is written once, and so is everything in it.
      if (uses.get(text) === 1) count(part)
    }
  }
  trees.forEach(count)

  function write({ parts }) {
    return parts
      .map(part => (isPart(part) ? writePart(part) : part.replace(/[`\\]|\$\{/g, '\\$&')))
      .filter(text => text !== '')
      .join('\n')
  }

  function writePart(part) {
    const text = textOf(part)
    if (text === '' || uses.get(text) === 1) return write(part)
    if (!constants.has(text)) {
      const literal = write(part)
      const constant = constantOf(part.name, [...constants.values()])
      constants.set(text, constant)
      declarations.push(`const ${constant} = \`${literal}\``)
    }
    return `\${${constants.get(text)}}`
  }

  return { write, declarations }
}

/** A name for a constant: `log.load` and `include/fields.lua` become `log_load` and `fields`. */
function constantOf(name, taken) {
  const plain = name.replace(/^include\/|\.lua$/g, '').replaceAll('.', '_')
  let constant = plain
  for (let nth = 2; taken.includes(constant); nth++) constant = `${plain}_${nth}`
  return constant
}

/** Names of functions and their library carry a hash of the code, so that two versions can live on one server. */
function render(scripts) {
  const library = `headgate_${sha1(scripts.map(script => script.sha).join('')).slice(0, 8)}`
  const { write, declarations } = createWriter(scripts.map(({ tree }) => tree))
  const entries = scripts.map(
    ({ name, tree, sha }) =>
      `  ${name}: {\n    sha: '${sha}',\n    functionName: '${library}_${name}',\n    text: \`${write(tree)}\`,\n  },`,
  )
  return `// Built by scripts/build-lua.mjs from lua/*.lua. Do not edit: change the Lua and run \`npm run lua\`.

/** One script: its text, and the names it goes by in the script cache and as a Redis Function. */
export interface Script {
  readonly sha: string
  readonly functionName: string
  readonly text: string
}

export const functionLibrary = '${library}'

${declarations.join('\n\n')}

export const scripts = {
${entries.join('\n')}
} as const satisfies Record<string, Script>
`
}

const built = render(buildScripts())
if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== built) {
    process.stderr.write(`${fileURLToPath(target)} is not what lua/ builds to; run npm run lua\n`)
    process.exitCode = 1
  }
} else {
  writeFileSync(target, built)
}
