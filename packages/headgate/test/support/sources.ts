/** Reads sources as text: their imports, and the words they use outside of comments. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'

interface Import {
  readonly specifier: string
  readonly typeOnly: boolean
}

/** Returns the imports of a source, including re-exports, bare and dynamic ones, but not those in comments. */
export function importsOf(source: string): Import[] {
  const code = withoutComments(source)
  const found: Import[] = []
  const statements = /\b(?:import|export)\s+(type\s+)?([\w$*\s{},]*?)\s*from\s*['"]([^'"]+)['"]/g
  for (const [, type, names = '', specifier = ''] of code.matchAll(statements)) {
    const named = /^\{([^}]*)\}$/.exec(names.trim())?.[1]?.split(',')
    const allTypes = named?.every(name => name.trim() === '' || name.trim().startsWith('type ')) ?? false
    found.push({ specifier, typeOnly: type !== undefined || allTypes })
  }
  for (const [, specifier = ''] of code.matchAll(/\bimport\s*['"]([^'"]+)['"]/g)) {
    found.push({ specifier, typeOnly: false })
  }
  for (const [, specifier = ''] of code.matchAll(/\b(?:import|require)\s*\(\s*['"`]([^'"`]+)['"`]/g)) {
    found.push({ specifier, typeOnly: false })
  }
  return found
}

/** Returns the code alone. */
export function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[^:'"`\\])\/\/.*$/gm, '$1')
}

/** Finds words by which arithmetic would reach the outside world: it has neither a clock nor a wait. */
export function impuritiesOf(source: string): string[] {
  const words =
    /\b(Date|performance|process(?=\.)|setTimeout|setInterval|setImmediate|queueMicrotask|Promise|async|await|globalThis)\b/g
  return [...withoutComments(source).matchAll(words)].map(([word]) => word)
}

export function readsClock(source: string): boolean {
  return /\b(Date\.now\b|Date\(\s*\)|performance\.|hrtime\b)/.test(withoutComments(source))
}

interface Source {
  readonly file: string
  readonly source: string
}

/** Returns every TypeScript source below a folder except the tests. */
export function sourcesOf(root: string): Source[] {
  if (!existsSync(root)) return []
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.test.ts'))
    .map(entry => join(entry.parentPath, entry.name))
    .map(path => ({ file: relative(root, path).split(sep).join('/'), source: readFileSync(path, 'utf8') }))
}
