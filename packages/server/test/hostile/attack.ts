/** One way to hurt a running server, and what must come of it. */
export interface Attack {
  /** Unique; the report's row and `--only` go by it. */
  readonly name: string
  /** What the attacker does, as a clause for the report. */
  readonly does: string
  /** What must come of it, as a clause for the report. */
  readonly expected: string
  /** Whether `npm test` runs it, too, with `effort.isShort`: seconds at most. */
  readonly inShort: boolean
  /** Attacks. Resolves to what happened, with figures; rejects if that is not what is expected. */
  run(effort: Effort): Promise<string>
}

/** How much an attack may try. */
export interface Effort {
  /** Every random choice comes from it, so that a failure can be repeated. */
  readonly seed: number
  /** Whether this is the selection in `npm test`. */
  readonly isShort: boolean
}

/** Attacks on the same part. One file each, listed in `registry.ts`. */
export interface AttackGroup {
  readonly title: string
  readonly attacks: readonly Attack[]
}
