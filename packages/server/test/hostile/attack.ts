/** One attack on a running server, and its required outcome. */
export interface Attack {
  /** Unique; the report's row and `--only` use it. */
  readonly name: string
  /** The action of the attacker, as a clause for the report. */
  readonly does: string
  /** The required outcome, as a clause for the report. */
  readonly expected: string
  /** Whether `npm test` also runs it, with `effort.isShort`: seconds at most. */
  readonly inShort: boolean
  /** Attacks. Resolves to what happened, with stats; rejects if that is not what was expected. */
  run(effort: Effort): Promise<string>
}

/** How much an attack may try. */
export interface Effort {
  /** The source of every random choice, so that a failure can be repeated. */
  readonly seed: number
  /** Whether this is the selection in `npm test`. */
  readonly isShort: boolean
}

/** Attacks on the same part. One file each, listed in `registry.ts`. */
export interface AttackGroup {
  readonly title: string
  readonly attacks: readonly Attack[]
}
