/** Where in the file a value stands: keys and list positions from the top. */
export type Path = readonly (string | number)[]

/** One mistake in a policy file. `message` says what was expected and what came. */
export interface ConfigProblem {
  readonly line: number
  readonly column: number
  /** As it would be written in code: `policies.api[0].limit`. Empty for the file as a whole. */
  readonly path: string
  readonly message: string
}

/** Notes a mistake. `at` says whether the key itself is wrong or what stands behind it. */
export type Report = (path: Path, message: string, at?: 'key' | 'value') => void

/** A policy file that cannot be used, with every mistake in it, or so many that nobody reads on. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[]

  constructor(file: string, problems: readonly ConfigProblem[], unlisted = 0) {
    const total = problems.length + unlisted
    const lines = problems.map(problem => `  ${file}:${formatProblem(problem)}`)
    if (unlisted > 0) lines.push(`  and ${unlisted} more`)
    super([`${file} cannot be used: ${total === 1 ? '1 problem' : `${total} problems`}`, ...lines].join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** A policy file that cannot be read at all. */
export class ConfigFileError extends Error {
  constructor(file: string, message: string) {
    super(`${file}: ${message}`)
    this.name = 'ConfigFileError'
  }
}

/** `line:column path: message`. */
export function formatProblem({ line, column, path, message }: ConfigProblem): string {
  return `${line}:${column} ${path === '' ? '' : `${path}: `}${message}`
}

export function formatPath(path: Path): string {
  return path.reduce<string>(
    (text, part) => (typeof part === 'number' ? `${text}[${part}]` : text === '' ? part : `${text}.${part}`),
    '',
  )
}
