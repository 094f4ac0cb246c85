import { HeadgateError } from '../errors.js'

/** Where in the file a value stands: keys and list positions from the top. */
export type Path = readonly (string | number)[]

/** What is wrong with a value. */
export interface Complaint {
  readonly expected: string
  readonly got: string
  /** The known name that was probably meant. */
  readonly suggestion?: string | null
}

/** One mistake in a policy file, a configuration in code, or the environment. */
export interface ConfigProblem {
  /** Counted from 1. Null where there is no text: in code and in the environment. */
  readonly line: number | null
  readonly column: number | null
  /** As it would be written in code: `policies.api[0].limit`. Empty for the file as a whole. */
  readonly path: string
  readonly expected: string
  readonly got: string
  /** The known name that was probably meant. */
  readonly suggestion: string | null
  /** All of it but the place, in a sentence. */
  readonly message: string
}

/** A policy file that cannot be used, with every mistake in it, or so many that nobody reads on. */
export class ConfigError extends HeadgateError {
  readonly problems: readonly ConfigProblem[]

  constructor(source: string, problems: readonly ConfigProblem[], unlisted = 0) {
    const total = problems.length + unlisted
    const lines = problems.map(problem => `  ${source}:${formatProblem(problem)}`)
    if (unlisted > 0) lines.push(`  and ${unlisted} more`)
    super(
      'ERR_HEADGATE_INVALID_CONFIG',
      [`${source} cannot be used: ${total === 1 ? '1 problem' : `${total} problems`}`, ...lines].join('\n'),
    )
    this.name = 'ConfigError'
    this.problems = problems
  }
}

const MAX_LISTED = 50

/** Gathers problems, and throws them all at once. */
export class ProblemList {
  readonly #problems: ConfigProblem[] = []
  #unlisted = 0

  /** Finding a place takes a walk from the top; a file of nothing but mistakes must not take one for each. */
  add(path: Path, complaint: Complaint, locate: () => { line: number; column: number } | null): void {
    if (this.#problems.length === MAX_LISTED) this.#unlisted++
    else this.#problems.push(toProblem(path, complaint, locate()))
  }

  /** Throws a `ConfigError` if there is any problem. */
  throwIfAny(source: string): void {
    if (this.#problems.length === 0) return
    const inOrder = this.#problems.toSorted(
      (a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0),
    )
    throw new ConfigError(source, inOrder, this.#unlisted)
  }
}

/** The problem of a complaint about the value at a path. */
export function toProblem(
  path: Path,
  { expected, got, suggestion = null }: Complaint,
  place: { line: number; column: number } | null,
): ConfigProblem {
  const hint = suggestion === null ? '' : `; did you mean "${suggestion}"?`
  return {
    line: place?.line ?? null,
    column: place?.column ?? null,
    path: formatPath(path),
    expected,
    got,
    suggestion,
    message: `expected ${expected}; got ${got}${hint}`,
  }
}

/** `line:column path: message`, without what is not known. */
export function formatProblem({ line, column, path, message }: ConfigProblem): string {
  const place = line === null ? '' : `${line}:${column}`
  return [place, path === '' ? message : `${path}: ${message}`].join(' ')
}

const SUBJECT_TYPE = /^(ip|user|apikey|session|internal|tenant):/

/** Never shows the id of a subject: it may be a secret. */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, part, index) => {
    if (typeof part === 'number') return `${text}[${part}]`
    const shown = path[0] === 'subjects' && index === 1 ? `${SUBJECT_TYPE.exec(part)?.[0] ?? ''}*` : part
    return text === '' ? shown : `${text}.${shown}`
  }, '')
}
