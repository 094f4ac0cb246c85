/**
 * Builds src/store/redis/scripts.gen.ts from lua/*.lua: includes and fragments in their places, SHA-1 computed.
 * `--check` only says whether the file is up to date.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const luaDir = new URL('../lua/', import.meta.url)
const target = new URL('../src/store/redis/scripts.gen.ts', import.meta.url)
const INCLUDE = /^\s*-- @include (\w+)(?:\((\w+)\))?$/
const INLINE = /^\s*-- @inline ([\w.]+)$/
const FRAGMENT = /^-- @fragment ([\w.]+)$/
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

function linesOf(path) {
  return readFileSync(new URL(path, luaDir), 'utf8').split('\n')
}

/** The lines of a file up to its first fragment. */
function bodyOf(path) {
  const lines = linesOf(path)
  const end = lines.findIndex(line => FRAGMENT.test(line))
  return end === -1 ? lines : lines.slice(0, end)
}

/**
 * Puts together the text of one script. A file is included once; a fragment is put in place as often as it is asked
 * for.
 */
function createFlattener(fragments) {
  const included = new Set()

  function flatten(lines, chain) {
    return lines.flatMap(line => {
      const include = INCLUDE.exec(line)
      if (include !== null) return flattenFile(`include/${include[1]}.lua`, chain, include[2])
      const inline = INLINE.exec(line)?.[1]
      if (inline !== undefined) return flattenFragment(inline, chain)
      return /^\s*(--.*)?$/.test(line) ? [] : [line.trim()]
    })
  }

  function flattenFile(path, parents, word) {
    const chain = longer(parents, path)
    if (included.has(path)) return []
    included.add(path)
    const lines = bodyOf(path)
    return flatten(word === undefined ? lines : lines.map(line => line.replace(PLACEHOLDER, word)), chain)
  }

  function flattenFragment(name, parents) {
    const lines = fragments.get(name)
    if (lines === undefined) throw new Error(`no fragment is called ${name}`)
    return flatten(lines, longer(parents, name))
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

function buildScripts() {
  const names = readdirSync(luaDir).filter(file => file.endsWith('.lua'))
  const fragments = readFragments()
  return names.sort().map(file => {
    const text = createFlattener(fragments)(file, []).join('\n')
    return { name: file.slice(0, -'.lua'.length), text, sha: sha1(text) }
  })
}

/** Names of functions and their library carry a hash of the code, so that two versions can live on one server. */
function render(scripts) {
  const library = `headgate_${sha1(scripts.map(script => script.sha).join('')).slice(0, 8)}`
  const entries = scripts.map(
    ({ name, text, sha }) =>
      `  ${name}: {\n    sha: '${sha}',\n    functionName: '${library}_${name}',\n    text: ${JSON.stringify(text)},\n  },`,
  )
  return `// Built by scripts/build-lua.mjs from lua/*.lua. Do not edit: change the Lua and run \`npm run lua\`.

/** One script: its text, and the names it goes by in the script cache and as a Redis Function. */
export interface Script {
  readonly sha: string
  readonly functionName: string
  readonly text: string
}

export const functionLibrary = '${library}'

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
