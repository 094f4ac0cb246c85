/**
 * The framework-free core of all adapters: identifies the caller, asks the limiter, and says what the
 * response carries. An adapter only converts its request (`Framework`) and writes the outcome.
 */
import type { Decision } from '../decision/decision.js'
import { decisionHeaders, type HeaderField, type HeaderOptions } from '../decision/headers.js'
import { isHeadgateError, unexpected } from '../errors/headgate-error.js'
import { ignoreRejection } from '../errors/ignore-rejection.js'
import type { Limiter } from '../limiter/limiter.js'
import { parseLogger } from '../observe/logger.js'
import { claimedMethods } from '../policy/claimed-methods.js'
import type { RefundBound } from '../policy/refund-rule.js'
import type { RequestFacts } from '../policy/request-facts.js'
import type { MaybePromise } from '../store/store.js'
import type { HttpRequest } from '../subject/http-request.js'
import { isPromise } from '../subject/sources.js'
import { limiterOptions } from './inline-limit.js'
import { logFaults, warnOnce } from './log.js'
import { createLookUp, type Found } from './look-up.js'
import { type AnyLimiterOptions, type AnyOptions, type RefundIf, rulesOf } from './options.js'
import { type OwnBody, type Rejection, rejectionOf } from './rejection.js'
import type { Ended } from './response-end.js'
import { validateOptions } from './validate-options.js'

/** Converts a framework's request for the core. */
export interface Framework<Native> {
  /** Whether requests reveal the peer address; otherwise `subject` is required. */
  readonly knowsPeer: boolean
  read(native: Native): HttpRequest
  /** Returns an object that is the same wherever in the framework a request appears. */
  origin(native: Native): object
  /** Returns the route that a middleware was put on; undefined if it is for several, or the framework does not say. */
  standsOn?(native: Native): string | undefined
}

/** The outcome for a request. */
export type Outcome = Passed | Rejected

export interface Passed {
  readonly allowed: true
  /** Null for a request that is not limited. */
  readonly decision: Decision | null
  /** The headers to add to its response. */
  readonly headers: readonly HeaderField[]
  /** Must be called when the response has ended; null if nothing depends on it. */
  readonly ended: Ended | null
}

export interface Rejected extends Rejection {
  readonly allowed: false
  readonly decision: Decision
}

/** Decides a request, synchronously if possible. Never throws and never rejects. */
export type Enforce<Native> = (native: Native) => MaybePromise<Outcome>

const SKIPPED: Passed = { allowed: true, decision: null, headers: [], ended: null }

/** Creates the function that an adapter calls for every request. Throws for invalid options, by name. */
export function createEnforce<Native>(
  given: AnyOptions<Native>,
  framework: Framework<Native>,
  random: () => number = Math.random,
): Enforce<Native> {
  const options = limiterOptions(given, framework)
  validateOptions(options, framework.knowsPeer)
  const { onDecision, onDenied, body, contentType, retryAfterJitterMs = 0 } = options
  const refundIf = refundIfOf(options)
  const headerOptions = headerOptionsOf(options)
  const { limiter, onStoreFailure, policy } = options
  const fault = { ...(onStoreFailure && { onStoreFailure }), ...(typeof policy === 'string' && { policy }) }
  const isByRules = rulesOf(options) !== null
  const read = (native: Native) => framework.read(native)
  const chargeKeyOf = createChargeKeyOf(options)
  const ask = createAsk(options, read)
  const logger = parseLogger(options.logger)
  const lookUp = createLookUp(options, read, warnOnce(logger))
  const onError = options.onError ?? logFaults(logger)

  /** A look-up that failed named nobody, so the address is asked for; `closed` rejects what is not certain. */
  function decideFound(native: Native, found: Found): MaybePromise<Outcome> {
    const { failure } = found
    if (failure === null) return decide(native, found)
    if (rejectsFault(native)) return answerFault(native, failure.error)
    const tell = (outcome: Outcome): Outcome => {
      report(failure.error, outcome.decision ?? undefined)
      return outcome
    }
    const outcome = decide(native, found)
    return isPromise(outcome) ? outcome.then(tell) : tell(outcome)
  }

  function decide(native: Native, found: Found): MaybePromise<Outcome> {
    const origin = framework.origin(native)
    const charge = chargeKeyOf(found)
    const earlier = earlierDecision(origin, charge)
    if (isPromise(earlier)) {
      return earlier.then(
        decided => answer(native, decided),
        error => answerFault(native, error),
      )
    }
    if (earlier !== null) return answer(native, earlier)
    const decision = ask(native, found)
    const charged = rememberDecision(origin, charge, decision)
    if (!isPromise(decision)) return firstAnswer(native, decision)
    return decision.then(
      decided => {
        charged.decision = decided
        return firstAnswer(native, decided)
      },
      error => answerFault(native, error),
    )
  }

  function firstAnswer(native: Native, decision: Decision): Outcome {
    notify(onDecision, decision, native)
    if (!decision.allowed) notify(onDenied, decision, native)
    return answer(native, decision)
  }

  function answer(native: Native, decision: Decision): Outcome {
    if (decision.allowed) {
      const headers = decisionHeaders(decision, headerOptions)
      return { allowed: true, decision, headers, ended: endedOf(decision, native) }
    }
    // A shadow limit may hold a permit for the request, which ends here.
    if (decision.isHeld) void decision.release()
    const laterByMs = Math.floor(random() * (retryAfterJitterMs + 1))
    const options = laterByMs === 0 ? headerOptions : { ...headerOptions, laterByMs }
    const rejection = rejectionOf(decision, options, acceptOf(native), ownBody(decision, native))
    return { allowed: false, decision, ...rejection }
  }

  /** Frees the request's permit, and refunds its charge if the status calls for it. */
  function endedOf(decision: Decision, native: Native): Ended | null {
    if (refundIf === null && !decision.isRefundable) {
      return decision.isHeld ? () => void decision.release() : null
    }
    let isOver = false
    return status => {
      if (isOver) return
      isOver = true
      void decision.release()
      if (status !== null) giveBackIfFree(status, decision, native)
    }
  }

  function giveBackIfFree(status: number, decision: Decision, native: Native): void {
    try {
      if (decision.cost === 0) return
      const atMost = refundedAtMost(status, decision, native)
      if (atMost === null) return
      limiter.refund(decision, { atMost }).catch(error => (chargedNothing(error) ? undefined : report(error)))
    } catch (error) {
      report(error)
    }
  }

  /** Returns the bounds of what a response gives back, by the policy file or the options; null if it does not. */
  function refundedAtMost(status: number, decision: Decision, native: Native): readonly RefundBound[] | null {
    if (decision.refundsOn(status)) return decision.refundAtMost
    return refundIf?.status(status, native) ? [refundIf.atMost] : null
  }

  function acceptOf(native: Native): string | undefined {
    return body === undefined ? framework.read(native).header('accept') : undefined
  }

  /** A failing body must not turn the rejection into an error, so the default body takes its place. */
  function ownBody(decision: Decision, native: Native): OwnBody | null {
    if (body === undefined) return null
    try {
      const made = body(decision, native)
      if (typeof made === 'string')
        return { body: made, contentType: contentType ?? 'text/plain; charset=utf-8' }
      ignoreRejection(made)
      const text = isPromise(made) ? undefined : JSON.stringify(made)
      if (text !== undefined) return { body: text, contentType: contentType ?? 'application/json' }
      report(
        unexpected(
          'ERR_HEADGATE_INVALID_OPTION',
          'body',
          'a function that returns text, or what can be written as JSON',
          made,
        ),
      )
    } catch (error) {
      report(error)
    }
    return null
  }

  /** If nothing can be asked about a request, the failure mode decides. */
  function answerFault(native: Native, error: unknown): Outcome {
    const decision = fallback(native)
    report(error, decision)
    return firstAnswer(native, decision)
  }

  function fallback(native: Native): Decision {
    return limiter.fallback(isByRules ? ruleFacts(native) : fault)
  }

  function rejectsFault(native: Native): boolean {
    return limiter.rejectsFault(isByRules ? ruleFacts(native) : fault)
  }

  /** The facts by which the rule is found; undefined for a request that cannot even be read. */
  function ruleFacts(native: Native): Parameters<Limiter['fallback']>[0] {
    try {
      const { method, url } = framework.read(native)
      return { method, path: url }
    } catch {
      return undefined
    }
  }

  /** Calls a listener. If it throws or rejects, that is reported and changes nothing. */
  function notify(
    listener: ((decision: Decision, native: Native) => unknown) | undefined,
    decision: Decision,
    native: Native,
  ): void {
    if (listener === undefined) return
    try {
      const told = listener(decision, native)
      if (isPromise(told)) told.then(undefined, error => report(error))
    } catch (error) {
      report(error)
    }
  }

  function report(error: unknown, decision?: Decision): void {
    try {
      ignoreRejection(onError(error, decision))
    } catch {
      // A failing error handler must not cause another fault.
    }
  }

  function enforce(native: Native): MaybePromise<Outcome> {
    try {
      const found = lookUp(native)
      if (!isPromise(found)) return found === null ? SKIPPED : decideFound(native, found)
      return found
        .then(known => (known === null ? SKIPPED : decideFound(native, known)))
        .catch(error => answerFault(native, error))
    } catch (error) {
      return answerFault(native, error)
    }
  }
  return enforce
}

function chargedNothing(error: unknown): boolean {
  return isHeadgateError(error) && error.code === 'ERR_HEADGATE_NOT_CHARGED'
}

function refundIfOf<Native>({ refundIf }: AnyLimiterOptions<Native>): Required<RefundIf<Native>> | null {
  if (refundIf === undefined) return null
  return { atMost: 'limit', ...(typeof refundIf === 'function' ? { status: refundIf } : refundIf) }
}

function headerOptionsOf<Native>({ headers, hide }: AnyLimiterOptions<Native>): HeaderOptions {
  return { ...(typeof headers === 'string' ? { style: headers } : headers), ...(hide && { hide }) }
}

/** Creates the function that describes a charge, so that a repeated one is recognised: the limiter, and what it is asked. */
function createChargeKeyOf<Native>({ limiter }: AnyLimiterOptions<Native>): (found: Found) => ChargeKey {
  return ({ subject, policy, tier, scope, cost, also }) => ({
    asked: limiter,
    policy,
    subject,
    tier,
    scope,
    cost,
    also,
  })
}

/** Creates the function that asks. It answers synchronously if the process already knows the answer. */
function createAsk<Native>(
  options: AnyLimiterOptions<Native>,
  read: (native: Native) => HttpRequest,
): (native: Native, found: Found) => MaybePromise<Decision> {
  const rules = rulesOf(options)
  if (rules === null) return createAskByName(options)
  return function askByRules(native, found) {
    return rules.requestNow(factsOf(read(native), found))
  }
}

function createAskByName<Native>({
  limiter,
  policy,
  onStoreFailure,
}: AnyLimiterOptions<Native>): (native: Native, found: Found) => MaybePromise<Decision> {
  const mode = onStoreFailure === undefined ? {} : { onStoreFailure }
  const plain = typeof policy === 'string' ? { policy, ...mode } : null
  return function askByName(_, { subject, policy, tier, cost, scope, also: others, perAddress }) {
    const [caller] = Array.isArray(subject) ? subject : [subject]
    const isPlain = cost === undefined && scope === undefined && others === undefined
    if (plain !== null && isPlain && perAddress === undefined) return limiter.checkNow(caller, plain)
    const asked = policy === undefined ? { tier: tier as string } : { policy }
    const minted = perAddress?.minted.find(one => one.subject === caller)
    const also =
      perAddress === undefined || minted === undefined
        ? others
        : [...(others ?? []), { subject: perAddress.address, times: minted.times, ...asked }]
    return limiter.checkNow(caller, {
      ...asked,
      ...mode,
      ...(scope !== undefined && { scope }),
      ...(cost !== undefined && { cost }),
      ...(also !== undefined && { also }),
    })
  }
}

function factsOf(request: HttpRequest, { subject, tier, cost, scope, perAddress }: Found): RequestFacts {
  const { method, url, id } = request
  const claimed = claimedMethods(name => request.similarHeaders?.(name) ?? request.header(name), url)
  return {
    subject,
    method,
    path: url,
    ...(claimed.length > 0 && { claimedMethods: claimed }),
    ...(id !== undefined && { requestId: id }),
    ...(tier !== undefined && { tier }),
    ...(cost !== undefined && { cost }),
    ...(scope !== undefined && { scope }),
    ...(perAddress !== undefined && { perAddress }),
  }
}

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
  decision: MaybePromise<Decision>
  readonly earlier: Charged | undefined
}

// Shared by every copy of this library in a process: one may have been imported, another required.
const CHARGED = Symbol.for('headgate.charged')

type Marked = { [CHARGED]?: Charged }

/** Returns the decision on the same charge, if an outer middleware has already made one for this request. */
function earlierDecision(request: object, charge: ChargeKey): MaybePromise<Decision> | null {
  for (let charged = (request as Marked)[CHARGED]; charged !== undefined; charged = charged.earlier) {
    if (isSame(charged.charge, charge)) return charged.decision
  }
  return null
}

/** Remembers a decision for as long as its request lives. */
function rememberDecision(request: object, charge: ChargeKey, decision: MaybePromise<Decision>): Charged {
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
