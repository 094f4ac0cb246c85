import type { Decision } from '../decision/decision.js'
import type { Eventually } from '../store/store.js'

/** The charge that a middleware made for a request. */
export interface ChargeKey {
  /** The limiter that was asked. */
  readonly asked: object
  readonly subject: unknown
  readonly policy: string | undefined
  readonly tier: string | undefined
  readonly scope: string | undefined
  readonly cost: number | undefined
  readonly also: unknown
}

/** A decision that was made for a request, or is being made. */
export interface Charged {
  readonly charge: ChargeKey
  decision: Eventually<Decision>
  readonly earlier: Charged | undefined
}

// Shared by every copy of this library in a process: one may have been imported, another required.
const CHARGED = Symbol.for('headgate.charged')

type Marked = { [CHARGED]?: Charged }

/** Returns the decision on the same charge, if an outer middleware has already made one for this request. */
export function earlierDecision(request: object, charge: ChargeKey): Eventually<Decision> | null {
  for (let charged = (request as Marked)[CHARGED]; charged !== undefined; charged = charged.earlier) {
    if (isSame(charged.charge, charge)) return charged.decision
  }
  return null
}

/** Remembers a decision for as long as its request lives. */
export function rememberDecision(
  request: object,
  charge: ChargeKey,
  decision: Eventually<Decision>,
): Charged {
  const marked = request as Marked
  const charged = { charge, decision, earlier: marked[CHARGED] }
  if (Object.isExtensible(request)) marked[CHARGED] = charged
  return charged
}

/** Whether no inner limiter, which knows more about the request, has decided on it since. */
export function isLastDecision(request: object, decision: Decision | null): boolean {
  const last = (request as Marked)[CHARGED]
  return last === undefined || last.decision === decision
}

/**
 * Another cost is another charge: an expensive request must not pass for the cheap one that an outer middleware
 * charged.
 */
function isSame(one: ChargeKey, other: ChargeKey): boolean {
  return (
    one.asked === other.asked &&
    one.policy === other.policy &&
    one.tier === other.tier &&
    one.scope === other.scope &&
    one.cost === other.cost &&
    textOf(one.subject) === textOf(other.subject) &&
    textOf(one.also) === textOf(other.also)
  )
}

function textOf(subject: unknown): string {
  return JSON.stringify(subject, (_, value) =>
    typeof value?.type === 'string' ? `${value.type}:${value.id}` : value,
  )
}
