import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { parse } from 'yaml'
import type { DescriptorConfig, DescriptorNode } from './descriptor-tree.js'
import { DescriptorConfigError } from './fields.js'
import { parseDescriptorFile } from './parse-descriptors.js'

const YAML = /\.ya?ml$/i
const MAX_BYTES = 16 * 1024 * 1024

/**
 * Loads the limits in a file, or in all YAML files of a folder, one domain each. Throws a `DescriptorConfigError`.
 */
export async function loadDescriptors(path: string): Promise<DescriptorConfig> {
  const config = new Map<string, DescriptorNode>()
  for (const file of await filesOf(path)) {
    const { domain, root } = await loadFile(file)
    if (config.has(domain)) {
      throw new DescriptorConfigError({
        field: `${basename(file)}: domain`,
        expected: 'one file a domain',
        got: 'another for it',
      })
    }
    config.set(domain, root)
  }
  return config
}

/** Returns a text that changes when any of the files does. */
export async function stampOf(path: string): Promise<string> {
  const stamps = await Promise.all(
    (await filesOf(path)).map(async file => {
      const { mtimeMs, size, ino } = await stat(file)
      return `${file} ${mtimeMs} ${size} ${ino}`
    }),
  )
  return stamps.join('\n')
}

async function filesOf(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path]
    const names = (await readdir(path)).filter(name => YAML.test(name)).sort()
    if (names.length > 0) return names.map(name => join(path, name))
  } catch (error) {
    throw new DescriptorConfigError({
      field: path,
      expected: 'a file or a folder that can be read',
      got: codeOf(error),
    })
  }
  throw new DescriptorConfigError({ field: path, expected: 'a folder with YAML files', got: 'none in it' })
}

async function loadFile(file: string): Promise<{ domain: string; root: DescriptorNode }> {
  try {
    const text = await readFile(file, 'utf8')
    if (text.length > MAX_BYTES)
      throw new DescriptorConfigError({ field: 'file', expected: `at most ${MAX_BYTES} bytes`, got: 'more' })
    return parseDescriptorFile(parse(text, { maxAliasCount: 100, prettyErrors: true }))
  } catch (error) {
    throw inFile(basename(file), error)
  }
}

function inFile(file: string, error: unknown): DescriptorConfigError {
  if (!(error instanceof DescriptorConfigError)) {
    // The parser shows the wrong lines below its first.
    const [got] = (error as Error).message.split('\n')
    return new DescriptorConfigError({ field: file, expected: 'a file of YAML', got })
  }
  const { field, expected = error.message, got, suggestion } = error
  return new DescriptorConfigError({ field: `${file}: ${field}`, expected, got, suggestion })
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? (error as Error).message
}
