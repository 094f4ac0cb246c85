// Writes packages/headgate/api.md: every name that every entry point exports, with its signature. A change of the surface is
// then a change of a file, which a review sees. `--check` compares instead of writing. Reads the types that tsc wrote.

import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PACKAGE = fileURLToPath(new URL('../packages/headgate/', import.meta.url))
const REPORT = join(PACKAGE, 'api.md')
/** Entry points whose names are not for users. */
const INTERNAL = './internal'

const EXPORTS = /export (?:type )?\{([^}]*)\} from '([^']+)'/g

/** The exported names of an entry point: the name, the file that declares it, and its name there. */
function exportsOf(file) {
  return [...readFileSync(file, 'utf8').matchAll(EXPORTS)].flatMap(([, names, from]) =>
    names
      .split(',')
      .map(name => name.replace(/^\s*type\s/, '').trim())
      .filter(name => name !== '')
      .map(name => {
        const [own, shown = own] = name.split(' as ')
        return { shown, own, file: join(dirname(file), from.replace(/\.js$/, '.d.ts')) }
      }),
  )
}

/** What a file declares under a name, without comments; overloads of a function are several. */
function declarationsOf(file, name) {
  const text = readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\/\n?[ \t]*/g, '')
  // tsc begins each statement of a file in the first column, and nothing else but its closing bracket.
  const statements = text.split(/\n(?=[a-z])/)
  const declares = new RegExp(
    `^export (?:declare )?(?:abstract )?(?:class|const|function|interface|type) ${name}\\b`,
  )
  const found = statements.filter(statement => declares.test(statement))
  if (found.length > 0) return found.map(statement => statement.trim().replace(/^export (?:declare )?/, ''))
  const again = exportsOf(file).find(({ shown }) => shown === name)
  if (again === undefined) throw new Error(`${file} declares no ${name}`)
  return declarationsOf(again.file, again.own)
}

function section(entry, target) {
  const names = exportsOf(join(PACKAGE, target.replace(/\.js$/, '.d.ts'))).toSorted((one, other) =>
    one.shown < other.shown ? -1 : 1,
  )
  const title = `## headgate${entry.slice(1)}: ${names.length} names`
  if (entry === INTERNAL)
    return [title, '', 'For `@headgate/server` alone.', '', names.map(({ shown }) => shown).join(', ')]
  const code = names.flatMap(({ file, own }) => declarationsOf(file, own))
  return [title, '', '```ts', code.join('\n'), '```']
}

const { exports } = JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8'))
const entries = Object.entries(exports).filter(([, target]) => typeof target === 'object')
const sections = entries.flatMap(([entry, target]) => ['', ...section(entry, target.default)])
const report = `${['# The API of headgate', '', 'Written by `npm run generate`.', ...sections].join('\n')}\n`

if (!process.argv.includes('--check')) writeFileSync(REPORT, report)
else if (readFileSync(REPORT, 'utf8') !== report) {
  console.error(
    'packages/headgate/api.md: expected the API as it is; run npm run generate and review the difference',
  )
  process.exitCode = 1
}
