import { HeadgateError } from '../errors/headgate-error.js'
import { mismatchText } from '../errors/mistake.js'
import { printable, shownName } from '../errors/shown-text.js'
import type { Report } from './shape/shape.js'
import type { Locate, Position } from './text/located-text.js'

/** The position of a value in the file: keys and list indexes from the top. */
export type Path = readonly (string | number)[]

/** Why a value is rejected. */
export interface Complaint {
  readonly expected: string
  readonly got: string
  /** The known name that was probably meant. */
  readonly suggestion?: string | null
}

/** One mistake in a policy file, a configuration in code, or the environment. */
export interface ConfigIssue {
  /** Counted from 1. Null if there is no text, as in code and in the environment. */
  readonly line: number | null
  readonly column: number | null
  /** As it would be written in code: `policies.api[0].limit`. Empty for the file as a whole. */
  readonly path: string
  readonly expected: string
  readonly got: string
  /** The known name that was probably meant. */
  readonly suggestion: string | null
  /** A sentence that says everything except the position. */
  readonly message: string
}

/**
 * A valid part of a policy file that is probably a mistake: it never takes effect, or means something else than it
 * seems to.
 */
export interface ConfigWarning {
  readonly code: ConfigWarningCode
  /** Counted from 1. Null if there is no text. */
  readonly line: number | null
  readonly column: number | null
  /** As it would be written in code: `policies.api[0]`. */
  readonly path: string
  /** A sentence that says everything except the position. */
  readonly message: string
}

/** The stable codes of warnings about a policy file. */
export type ConfigWarningCode =
  | 'WARN_HEADGATE_INTERNAL_OF_PROXY'
  | 'WARN_HEADGATE_LIMIT_NEVER_BINDS'
  | 'WARN_HEADGATE_POLICY_NEVER_CHARGED'
  | 'WARN_HEADGATE_SUBJECT_NEVER_FOUND'
  | 'WARN_HEADGATE_WINDOW_IN_SECONDS'

/** Records a warning about the part at a path. */
export type Warn = (path: Path, code: ConfigWarningCode, message: string) => void

/** Thrown for a policy file that cannot be used. Lists every mistake in it, up to a limit. */
export class ConfigError extends HeadgateError {
  readonly issues: readonly ConfigIssue[]
  /** How many more mistakes there were. */
  readonly unlisted: number

  constructor(source: string, issues: readonly ConfigIssue[], unlisted = 0) {
    const total = issues.length + unlisted
    const lines = issues.map(issue => `  ${source}:${formatIssue(issue)}`)
    if (unlisted > 0) lines.push(`  and ${unlisted} more`)
    super(
      'ERR_HEADGATE_INVALID_CONFIG',
      [`${source} cannot be used: ${total === 1 ? '1 problem' : `${total} problems`}`, ...lines].join('\n'),
    )
    this.name = 'ConfigError'
    this.issues = issues
    this.unlisted = unlisted
  }
}

const MAX_LISTED = 50

/** Collects mistakes, to report them all at once. */
export class IssueList {
  readonly #found: Parameters<Report>[] = []
  #unlisted = 0

  /** Records a mistake. */
  readonly add: Report = (...mistake) => {
    if (this.#found.length === MAX_LISTED) this.#unlisted++
    else this.#found.push(mistake)
  }

  get isEmpty(): boolean {
    return this.#found.length === 0
  }

  /** Returns the error that lists them, in the order of their places. */
  toError(source: string, locate: Locate = () => null): ConfigError {
    const issues = this.#found
      .map(([path, complaint, at]) => toIssue(path, complaint, locate(path, at)))
      .sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
    return new ConfigError(source, issues, this.#unlisted)
  }
}

/** Describes a complaint about the value at a path as an issue. */
export function toIssue(
  path: Path,
  { expected, got, suggestion = null }: Complaint,
  place: Position | null,
): ConfigIssue {
  // Backticks are for the reference.
  const plain = expected.replaceAll('`', '')
  return {
    line: place?.line ?? null,
    column: place?.column ?? null,
    path: formatPath(path),
    expected: plain,
    got,
    suggestion,
    message: printable(mismatchText({ expected: plain, got, suggestion })),
  }
}

/** Formats `line:column path: message`, leaving out what is unknown. */
export function formatIssue({
  line,
  column,
  path,
  message,
}: Pick<ConfigIssue, 'line' | 'column' | 'path' | 'message'>): string {
  const place = line === null ? '' : `${line}:${column}`
  return [place, path === '' ? message : `${path}: ${message}`].join(' ')
}

const SUBJECT_TYPE = /^(ip|user|apikey|session|internal|tenant):/

/**
 * Formats a path. Never shows the id of a subject, which may be a secret; an API key may even be where none
 * belongs.
 */
export function formatPath(path: Path): string {
  return path.reduce<string>((text, part, index) => {
    if (typeof part === 'number') return `${text}[${part}]`
    const shown =
      path[0] === 'subjects' && index === 1 ? `${SUBJECT_TYPE.exec(part)?.[0] ?? ''}*` : shownName(part)
    return text === '' ? shown : `${text}.${shown}`
  }, '')
}
