/**
 * Builds src/store/redis/scripts.gen.ts from lua/*.lua: includes resolved (each once, cycles refused), SHA-1 computed.
 * `--check` only says whether the file is up to date.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const luaDir = new URL('../lua/', import.meta.url)
const target = new URL('../src/store/redis/scripts.gen.ts', import.meta.url)
const INCLUDE = /^-- @include (\w+)$/

/** The text of a Lua file with its includes in place; one that was included before is not repeated. */
function flatten(path, seen, parents) {
  seen.add(path)
  const chain = [...parents, path]
  const lines = []
  for (const line of readFileSync(new URL(path, luaDir), 'utf8').split('\n')) {
    const include = INCLUDE.exec(line)
    if (include === null) {
      if (!/^\s*(--.*)?$/.test(line)) lines.push(line.trim())
      continue
    }
    const included = `include/${include[1]}.lua`
    if (chain.includes(included)) throw new Error(`include cycle: ${[...chain, included].join(' -> ')}`)
    if (!seen.has(included)) lines.push(...flatten(included, seen, chain))
  }
  return lines
}

function sha1(text) {
  return createHash('sha1').update(text).digest('hex')
}

function buildScripts() {
  const names = readdirSync(luaDir).filter(file => file.endsWith('.lua'))
  return names.sort().map(file => {
    const text = flatten(file, new Set(), []).join('\n')
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
