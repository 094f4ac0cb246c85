/**
 * Builds src/store/redis/scripts.gen.ts from lua/. An algorithm is one file of lua/algorithms: `@kind <name> <numbers>` names it,
 * and `@load`, `@charge` and so on begin its sections, in which every local ends in `_N`. A script is one file of lua/, in which
 *   @include <file>        puts a file of lua/include in its place,
 *   @functions             the functions of all algorithms,
 *   @kinds [<section>] … @end   what lies between once for each algorithm (that has the section), with KIND, NUMBERS, STATE and
 *                          the sections of that algorithm, and KINDS after it as a table of them by name.
 * Comments and indentation go. Straight-line scripts are put together from the same sections at run time (straight-line.ts).
 * `--check` only says whether the file is up to date; `--from=<folder>/ --to=<file>` builds another folder.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const option = name => process.argv.find(arg => arg.startsWith(`--${name}=`))?.slice(name.length + 3)
const luaDir = new URL(option('from') ?? '../lua/', import.meta.url)
const target = new URL(option('to') ?? '../src/store/redis/scripts.gen.ts', import.meta.url)
const SECTIONS = [
  'functions',
  'alone',
  'period',
  'current',
  'prepare',
  'rich',
  'load',
  'write',
  'charge',
  'deny',
  'refund',
  'beyond',
  'renew',
  'credit',
  'reset',
]

/** As many as the arguments of decide.lua have room for. */
const MOST_NUMBERS = 3

const sha1 = text => createHash('sha1').update(text).digest('hex')
const linesOf = path => readFileSync(new URL(path, luaDir), 'utf8').split('\n')
const luaFiles = folder =>
  readdirSync(new URL(folder, luaDir))
    .filter(file => file.endsWith('.lua'))
    .sort()
/** Returns a directive's name and the rest of its line. */
const directiveOf = line => /^\s*-- @(\w+) ?(.*)$/.exec(line)?.slice(1) ?? []
const isCode = line => !/^\s*(--.*)?$/.test(line)

/** Reads one algorithm: a directive at the start of a line begins a section, an indented one is replaced by its section. */
function readKind(file) {
  const kind = { sections: {} }
  let section
  for (const line of linesOf(`algorithms/${file}`)) {
    const [name, rest] = directiveOf(line)
    if (name === 'kind') [kind.name, ...kind.numbers] = rest.split(' ')
    else if (name === 'state') kind.state = rest
    else if (name !== undefined && line.startsWith('--')) {
      if (!SECTIONS.includes(name)) throw new Error(`${file}: no section is called ${name}`)
      section = kind.sections[name] = []
    } else if (name !== undefined) {
      if (kind.sections[name] === undefined) throw new Error(`${file}: @${name} must stand before it is used`)
      section.push(sectionOf(kind, name))
    } else if (isCode(line)) section.push(line.trim())
  }
  if (kind.numbers?.length > MOST_NUMBERS)
    throw new Error(`${file}: @kind names more than ${MOST_NUMBERS} numbers`)
  if (kind.name === undefined || !kind.state) throw new Error(`${file}: @kind or @state is missing`)
  return kind
}

const kinds = luaFiles('algorithms/').map(readKind)

/** A section of an algorithm, by the name of its constant in the generated file. */
function sectionOf(kind, section) {
  return { constant: `${kind.name}_${section}`, parts: kind.sections[section] }
}

const included = new Map()

/** A file of lua/include, likewise; after those that it includes itself. */
function include(file) {
  if (!included.has(file)) {
    const constant = file.replace(/_(.)/g, (_, letter) => letter.toUpperCase())
    included.set(file, { constant, parts: partsOf(linesOf(`include/${file}.lua`)) })
  }
  return included.get(file)
}

/** The parts of a script: lines, and what goes by a name. */
function partsOf(lines) {
  const parts = []
  let made = ''
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index]
    const [name, rest] = directiveOf(line)
    if (name === 'include') parts.push(include(rest))
    else if (name === 'functions') for (const kind of kinds) addSection(parts, kind, 'functions')
    else if (name === 'kinds') {
      const end = lines.findIndex((other, at) => at > index && directiveOf(other)[0] === 'end')
      const found = kinds.filter(kind => rest === '' || kind.sections[rest] !== undefined)
      for (const kind of found) parts.push(...expand(lines.slice(index + 1, end), kind))
      const maker = /function (\w+)_KIND/.exec(lines.slice(index, end).join('\n'))[1]
      made = found.map(kind => `${kind.name} = ${maker}_${kind.name}`).join(', ')
      index = end
    } else if (name !== undefined) throw new Error(`no directive is called ${name}`)
    else if (isCode(line)) parts.push(line.trim().replace('KINDS', made))
  }
  return parts
}

/** What lies between `@kinds` and `@end`, for one algorithm. Numbers come as texts; those called `_text` stay so. */
function expand(lines, kind) {
  const names = kind.numbers.map(name => `${name}_N`)
  const numbers = names.filter(name => !name.endsWith('_text_N'))
  const parts = []
  for (const line of lines) {
    const [name] = directiveOf(line)
    if (name !== undefined && !SECTIONS.includes(name)) throw new Error(`no section is called ${name}`)
    if (name !== undefined) addSection(parts, kind, name)
    else if (isCode(line)) {
      parts.push(
        line
          .trim()
          .replace('KIND', kind.name)
          .replace('NUMBERS', names.join(', '))
          .replace('STATE', kind.state),
      )
      if (line.includes('NUMBERS'))
        parts.push(`${numbers.join(', ')} = ${numbers.map(each => `${each} + 0`).join(', ')}`)
    }
  }
  return parts
}

function addSection(parts, kind, section) {
  if (kind.sections[section] !== undefined) parts.push(sectionOf(kind, section))
}

const textOf = parts => parts.map(part => (typeof part === 'string' ? part : textOf(part.parts))).join('\n')
const escaped = text => text.replace(/[`\\]|\$\{/g, '\\$&')
const literal = parts =>
  `\`${parts.map(part => (typeof part === 'string' ? escaped(part) : `\${${part.constant}}`)).join('\n')}\``

/** Names of functions and their library carry a hash of the code, so that two versions can live on one server. */
function render() {
  const scripts = luaFiles('.').map(file => {
    const parts = partsOf(linesOf(file))
    return { name: file.slice(0, -'.lua'.length), parts, sha: sha1(textOf(parts)) }
  })
  const library = `headgate_${sha1(scripts.map(script => script.sha).join('')).slice(0, 8)}`
  const constants = kinds.flatMap(kind =>
    Object.keys(kind.sections).map(section => {
      const { constant, parts } = sectionOf(kind, section)
      return `const ${constant} = ${literal(parts)}`
    }),
  )
  const straight = kinds.map(kind => {
    const used = ['functions', 'alone', 'prepare', 'load', 'charge', 'deny'].map(
      section =>
        `    ${section}: ${kind.sections[section] === undefined ? "''" : `${kind.name}_${section}`},`,
    )
    const numbers = kind.numbers.map(name => `'${name}'`).join(', ')
    return `  ${kind.name}: {\n    numbers: [${numbers}],\n    state: \`${escaped(kind.state)}\`,\n${used.join('\n')}\n  },`
  })
  const entries = scripts.map(
    ({ name, parts, sha }) =>
      `  ${name}: {\n    sha: '${sha}',\n    functionName: '${library}_${name}',\n    text: ${literal(parts)},\n  },`,
  )
  // Those that straight-line scripts need, too.
  const exported = ['problem', 'test_clock'].map(include)
  const shared = [...included.values()].map(file => {
    const declared = exported.includes(file)
      ? `export const ${file.constant}: string`
      : `const ${file.constant}`
    return `${declared} = ${literal(file.parts)}`
  })
  const names = scripts.map(({ name }) => `'${name}'`).join(' | ')
  const texts = [
    ...scripts.map(({ parts }) => textOf(parts)),
    ...kinds.flatMap(kind => Object.values(kind.sections).map(textOf)),
  ]
  const commands = new Set(
    [...texts.join('\n').matchAll(/\bcall\('([A-Z]+)'/g)].map(([, command]) => command.toLowerCase()),
  )
  // Only with the clock of a test.
  commands.delete('pexpiretime')
  return `// Built by scripts/build-lua.mjs from lua/. Do not edit: change the Lua and run \`npm run lua\`.

/** One script: its text, and the names it goes by in the script cache and as a Redis Function. */
export interface Script {
  readonly sha: string
  readonly functionName: string
  readonly text: string
}

/** The sections of an algorithm's Lua file of which straight-line scripts are made. */
export interface Kind {
  /** The names of its numbers; those that end in \`_text\` are texts. */
  readonly numbers: readonly string[]
  /** The expressions of the state that a denial tells. */
  readonly state: string
  readonly functions: string
  readonly alone: string
  readonly prepare: string
  readonly load: string
  readonly charge: string
  readonly deny: string
}

export const functionLibrary = '${library}'

/** The commands that the scripts use. */
export const commands: readonly string[] = '${[...commands].sort().join(' ')}'.split(' ')

${constants.join('\n\n')}

${shared.join('\n\n')}

export const kinds: Readonly<Record<string, Kind>> = {
${straight.join('\n')}
}

export const scripts: Readonly<Record<${names}, Script>> = {
${entries.join('\n')}
}
`
}

const built = render()
if (process.argv.includes('--check')) {
  if (readFileSync(target, 'utf8') !== built) {
    process.stderr.write(`${fileURLToPath(target)} is not what lua/ builds to; run npm run lua\n`)
    process.exitCode = 1
  }
} else {
  writeFileSync(target, built)
}
