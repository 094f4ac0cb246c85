/** Tests are all declared with one word, and their names are complete sentences. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { withoutComments } from './support/sources.js'

const REPOSITORY = join(import.meta.dirname, '../../..')
const SKIPPED = new Set(['node_modules', 'dist', 'cjs', '.git'])

/** Words that only continue a sentence begun by a `describe`. */
const CONTINUATIONS = new Set(
  [
    'is are was has have had may can cannot must does do did will would should stays stay stands becomes',
    'that which whose where when while because if unless until since',
    'and or but nor neither also so not never always only',
    'of in on at by to for from with without within behind before after beyond between under over against as',
    'accepts adds admits advertises allows answers asks attains carries charges closes comes compares completes',
    'counts decides denies divides draws ends explains fails finds fires forgets frees gets gives goes',
    'hands hears holds ignores includes judges keeps knows leaves lets limits loads logs looks loses makes matches',
    'meets names needs opens outlives passes plays prints promises puts reaches reads refuses rejects renews',
    'reports returns rounds runs saves says sees sends serves settles shares shifts shows skips speaks spends',
    'spreads starts stops sums survives switches takes tells throws tries turns uses waits warns works writes',
  ].flatMap(words => words.split(' ')),
)
/** Words of that kind that can also be the subject of a sentence: "answers are counted", "limits hold". */
const SUBJECTS = new Set(['answers', 'counts', 'limits', 'names', 'costs', 'shares'])

it('every test is declared with it', () => {
  const others = tests().filter(({ source }) =>
    /import \{[^}]*\btest\b[^}]*\} from '(vitest|node:test)'/.test(source),
  )
  expect(others.map(({ path }) => path)).toEqual([])
})

it('every test name can be understood without its describe', () => {
  const names = tests().flatMap(({ path, source }) => namesOf(source).map(name => ({ path, name })))
  expect(names.length).toBeGreaterThan(1_000)
  expect(names.filter(({ name }) => continues(name))).toEqual([])
})

it.each([
  ["it('is refused by name', () => {})", true],
  ["it.each([1, 2])('refuses %i', () => {})", true],
  ['it.each(CASES)(\n  "%s",\n  () => {})', true],
  ["it('a limit of 0 is refused by name', () => {})", false],
  ["it.each([\n  ['a', 1],\n  ['b', 2],\n])('%s', () => {})", true],
])('a name that only continues a sentence is found: %j', (source, found) => {
  expect(namesOf(source).map(continues)).toEqual([found])
})

function continues(name: string): boolean {
  const first = name.split(/[ ,:]/, 1)[0] ?? ''
  return /^%\w$/.test(name) || (CONTINUATIONS.has(first) && !SUBJECTS.has(first))
}

/** Returns the names written out in a source. A table may come between `it` and the name. */
function namesOf(source: string): string[] {
  const calls = /^( *)it\b(?:[^'"`\n]*\n(?:\1 .*\n)*\1[^\n(]*\)|[^\n]*?)\(\s*(['"`])((?:\\.|(?!\2).)*)\2,/gm
  return [...withoutComments(source).matchAll(calls)].map(([, , , name = '']) => name)
}

function tests(): { path: string; source: string }[] {
  const found: { path: string; source: string }[] = []
  const walk = (folder: string): void => {
    for (const entry of readdirSync(join(REPOSITORY, folder), { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isDirectory() && !SKIPPED.has(entry.name)) walk(path)
      if (/\.test\.(ts|tsx|js|mjs)$/.test(entry.name)) {
        found.push({ path, source: readFileSync(join(REPOSITORY, path), 'utf8') })
      }
    }
  }
  walk('')
  return found
}
