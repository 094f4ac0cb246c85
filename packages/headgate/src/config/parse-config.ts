import { HeadgateError, invalidOption } from '../errors/headgate-error.js'
import type { Config } from '../policy/config.js'
import { ConfigError, type ConfigWarning, formatPath, IssueList, type Warn } from './config-error.js'
import { readConfig } from './read-config.js'
import type { LocatedText } from './text/located-text.js'
import { readJson } from './text/read-json.js'

/** The largest policy file. */
export const MAX_BYTES = 1024 * 1024

export interface ReadOptions {
  /** Called for every part that is valid but probably a mistake. */
  readonly onWarning?: (warning: ConfigWarning) => void
}

/**
 * Parses the text of a policy file: JSON if `fileName` ends in `.json`, else YAML. Throws a `ConfigError` that
 * lists every mistake with line and column. YAML needs the package `yaml`.
 */
export async function parseConfig(
  text: string,
  fileName: string,
  { onWarning }: ReadOptions = {},
): Promise<Config> {
  if (typeof text !== 'string') throw invalidOption('text', 'the text of a policy file', text)
  if (typeof fileName !== 'string') throw invalidOption('fileName', 'the name of the policy file', fileName)
  if (text.length > MAX_BYTES) throw unreadable(fileName, `at most ${MAX_BYTES} bytes`, 'more')
  const source = await readText(text.replace(/^\uFEFF/, ''), fileName)
  if (source.issues.length > 0) throw new ConfigError(fileName, source.issues)
  const issues = new IssueList()
  const doubts: Parameters<Warn>[] = []
  const config = readConfig(
    source.value,
    issues.add,
    onWarning === undefined ? null : (...doubt) => doubts.push(doubt),
  )
  if (config === null) throw issues.toError(fileName, await source.locator())
  const locate = doubts.length > 0 ? await source.locator() : null
  for (const [path, code, message] of doubts) {
    const { line = null, column = null } = locate?.(path, 'key') ?? {}
    onWarning?.({ code, line, column, path: formatPath(path), message })
  }
  return config
}

/** The error for a policy file that could not be read at all. */
export function unreadable(field: string, expected: string, got: string): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_UNREADABLE_CONFIG', { field, expected, got })
}

async function readText(text: string, fileName: string): Promise<LocatedText> {
  if (fileName.toLowerCase().endsWith('.json')) return readJson(text)
  const { readYaml } = await loadYaml(fileName)
  return readYaml(text)
}

/** Imported only when a YAML text is read, so that those who configure in code need not install the parser. */
async function loadYaml(fileName: string): Promise<typeof import('./text/read-yaml.js')> {
  try {
    return await import('./text/read-yaml.js')
  } catch (cause) {
    throw new HeadgateError(
      'ERR_HEADGATE_MISSING_PACKAGE',
      { field: fileName, expected: 'the package yaml to read it', got: 'none: run npm install yaml' },
      { cause },
    )
  }
}
