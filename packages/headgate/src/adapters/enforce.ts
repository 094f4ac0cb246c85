/**
 * The framework-free core of all adapters: identifies the caller, asks the limiter, and says what the
 * response carries. An adapter only converts its request (`Framework`) and writes the outcome.
 */
import type { Decision } from '../decision/decision.js'
import { createHeadersOf, type HeaderField, type HeaderOptions } from '../decision/headers.js'
import { invalidOption, isHeadgateError } from '../errors/headgate-error.js'
import { ignoreRejection } from '../errors/ignore-rejection.js'
import type { Hold } from '../limiter/fair-queue.js'
import type { Limiter, RuleLimiter } from '../limiter/limiter.js'
import { parseLogger } from '../observe/logger.js'
import { claimedMethods } from '../policy/claimed-methods.js'
import { boundOf } from '../policy/refund-rate.js'
import type { RefundBound } from '../policy/refund-rule.js'
import type { RequestFacts } from '../policy/request-facts.js'
import type { Estimates } from '../policy/token-meters.js'
import { parseWait } from '../policy/wait.js'
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
  /** Reserves the tokens of a model that the request takes besides, by the policy file; null if it limits none. */
  readonly reserveTokens: ((estimates: Estimates) => MaybePromise<Outcome>) | null
}

export interface Rejected extends Rejection {
  readonly allowed: false
  readonly decision: Decision
}

/** Decides a request, synchronously if possible. Never throws and never rejects. */
export type Enforce<Native> = (native: Native) => MaybePromise<Outcome>

const SKIPPED: Passed = { allowed: true, decision: null, headers: [], ended: null, reserveTokens: null }

/** Creates the function that an adapter calls for every request. Throws for invalid options, by name. */
export function createEnforce<Native>(
  given: AnyOptions<Native>,
  framework: Framework<Native>,
  random: () => number = Math.random,
): Enforce<Native> {
  const options = limiterOptions(given, framework)
  validateOptions(options, framework.knowsPeer)
  const { onDecision, onDenied, resetIf, body, contentType, retryAfterJitterMs = 0 } = options
  const refundIf = refundIfOf(options)
  const headerOptions = headerOptionsOf(options)
  const headersOf = createHeadersOf(headerOptions)
  const { limiter, onStoreFailure, policy } = options
  const fault = { ...(onStoreFailure && { onStoreFailure }), ...(typeof policy === 'string' && { policy }) }
  const rules = rulesOf(options)
  const read = (native: Native) => framework.read(native)
  const ask = createAsk(options, read)
  const logger = parseLogger(options.logger)
  const lookUp = createLookUp(options, read, warnOnce(logger))
  const onError = options.onError ?? logFaults(logger)

  /** A look-up that failed named nobody, so the address is asked for; `closed` rejects what is not certain. */
  function decideFound(native: Native, found: Found): MaybePromise<Outcome> {
    if (found.failure === null) return decide(native, found)
    const { error } = found.failure
    return rejectsFault(native) ? answerFault(native, error) : tellAfter(decide(native, found), error)
  }

  function tellAfter(outcome: MaybePromise<Outcome>, error: unknown): MaybePromise<Outcome> {
    if (isPromise(outcome)) return outcome.then(known => tellAfter(known, error))
    report(error, outcome.decision ?? undefined)
    return outcome
  }

  function decide(native: Native, found: Found): MaybePromise<Outcome> {
    const origin = framework.origin(native) as Marked
    const last = origin[CHARGED]
    const earlier = last === undefined ? null : earlierDecision(last, limiter, found)
    if (earlier !== null)
      return isPromise(earlier) ? answerLater(native, earlier, found) : answer(native, earlier, found)
    const decision = ask(native, found)
    const charged = new Charged(limiter, found, decision, last)
    if (Object.isExtensible(origin)) origin[CHARGED] = charged
    return isPromise(decision)
      ? firstAnswerLater(native, decision, charged)
      : firstAnswer(native, decision, found)
  }

  function answerLater(native: Native, decision: Promise<Decision>, found: Found): Promise<Outcome> {
    return decision.then(
      decided => answer(native, decided, found),
      error => answerFault(native, error),
    )
  }

  function firstAnswerLater(native: Native, decision: Promise<Decision>, charged: Charged): Promise<Outcome> {
    return decision.then(
      decided => {
        charged.decision = decided
        return firstAnswer(native, decided, charged.charge)
      },
      error => answerFault(native, error),
    )
  }

  function firstAnswer(native: Native, decision: Decision, found: Found | null): Outcome {
    notify(onDecision, decision, native)
    if (!decision.allowed) notify(onDenied, decision, native)
    return answer(native, decision, found)
  }

  /** `found` is null where nothing more is asked about the request. */
  function answer(native: Native, decision: Decision, found: Found | null): Outcome {
    if (decision.allowed) {
      return {
        allowed: true,
        decision,
        headers: headersOf(decision),
        ended: endedOf(decision, native),
        reserveTokens: found === null ? null : reserveOf(decision, native, found),
      }
    }
    // A shadow limit may hold a permit for the request, which ends here.
    if (decision.isHeld) void decision.release()
    const laterByMs = Math.floor(random() * (retryAfterJitterMs + 1))
    const options = laterByMs === 0 ? headerOptions : { ...headerOptions, laterByMs }
    const rejection = rejectionOf(decision, options, acceptOf(native), ownBody(decision, native))
    return { allowed: false, decision, ...rejection }
  }

  function reserveOf(decision: Decision, native: Native, found: Found): Passed['reserveTokens'] {
    if (rules === null || decision.tokens.length === 0) return null
    return estimates => reserveTokens(rules, native, found, estimates)
  }

  function reserveTokens(
    rules: RuleLimiter,
    native: Native,
    found: Found,
    estimates: Estimates,
  ): MaybePromise<Outcome> {
    try {
      const decision = rules.reserveTokens(factsOf(read(native), found), estimates)
      if (!isPromise(decision)) return firstAnswer(native, decision, null)
      return decision.then(
        decided => firstAnswer(native, decided, null),
        error => answerFault(native, error),
      )
    } catch (error) {
      return answerFault(native, error)
    }
  }

  /** What the end of the response means: null if nothing depends on it, as for most requests. */
  function endedOf(decision: Decision, native: Native): Ended | null {
    const isAlways = refundIf !== null || resetIf !== undefined
    const depends = isAlways || decision.isHeld || decision.isRefundable || decision.isResettable
    return depends ? onEnd(decision, native) : null
  }

  /** Frees the request's permit, and refunds or forgets if the status calls for it. */
  function onEnd(decision: Decision, native: Native): Ended {
    let isOver = false
    return status => {
      if (isOver) return
      isOver = true
      void decision.release()
      if (status === null) return
      if (isForgiven(status, decision, native)) void limiter.forgive(decision).catch(report)
      else giveBackIfFree(status, decision, native)
    }
  }

  function isForgiven(status: number, decision: Decision, native: Native): boolean {
    try {
      return decision.resetsOn(status) || resetIf?.(status, native) === true
    } catch (error) {
      report(error)
      return false
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
    return refundIf?.status(status, native) ? [boundOf(refundIf.atMost)] : null
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
      report(invalidOption('body', 'a function that returns text, or what can be written as JSON', made))
    } catch (error) {
      report(error)
    }
    return null
  }

  /** If nothing can be asked about a request, the failure mode decides. */
  function answerFault(native: Native, error: unknown): Outcome {
    const decision = fallback(native)
    report(error, decision)
    return firstAnswer(native, decision, null)
  }

  function fallback(native: Native): Decision {
    return limiter.fallback(rules !== null ? ruleFacts(native) : fault)
  }

  function rejectsFault(native: Native): boolean {
    return limiter.rejectsFault(rules !== null ? ruleFacts(native) : fault)
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

  async function decideOnceFound(native: Native, looking: Promise<Found | null>): Promise<Outcome> {
    try {
      const found = await looking
      return found === null ? SKIPPED : await decideFound(native, found)
    } catch (error) {
      return answerFault(native, error)
    }
  }

  function enforce(native: Native): MaybePromise<Outcome> {
    try {
      const found = lookUp(native)
      if (isPromise(found)) return decideOnceFound(native, found)
      return found === null ? SKIPPED : decideFound(native, found)
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

/** Creates the function that asks. It answers synchronously if the process already knows the answer. */
function createAsk<Native>(
  options: AnyLimiterOptions<Native>,
  read: (native: Native) => HttpRequest,
): (native: Native, found: Found) => MaybePromise<Decision> {
  const rules = rulesOf(options)
  const wait = options.wait === undefined ? null : parseWait(options.wait)
  /** A client that leaves need not wait any longer. */
  const holdOf = (request: HttpRequest): Hold => ({
    wait,
    get signal() {
      return request.signal
    },
  })
  if (rules === null) return createAskByName(options, wait && (native => holdOf(read(native))))
  return function askByRules(native, found) {
    const request = read(native)
    return rules.requestNow(factsOf(request, found), wait === null ? request : holdOf(request))
  }
}

function createAskByName<Native>(
  { limiter, policy, onStoreFailure }: AnyLimiterOptions<Native>,
  holdOf: ((native: Native) => Hold) | null,
): (native: Native, found: Found) => MaybePromise<Decision> {
  const mode = onStoreFailure === undefined ? {} : { onStoreFailure }
  const plain = typeof policy === 'string' ? { policy, ...mode } : null
  return function askByName(native, { subject, policy, tier, cost, scope, also: others, perAddress }) {
    const caller = Array.isArray(subject) ? subject[0] : subject
    const hold = holdOf === null ? undefined : holdOf(native)
    const isPlain = cost === undefined && scope === undefined && others === undefined
    if (plain !== null && isPlain && perAddress === undefined) return limiter.checkNow(caller, plain, hold)
    const asked = policy === undefined ? { tier: tier as string } : { policy }
    const minted = perAddress?.minted.find(one => one.subject === caller)
    const also =
      perAddress === undefined || minted === undefined
        ? others
        : [...(others ?? []), { subject: perAddress.address, times: minted.times, ...asked }]
    const full = {
      ...asked,
      ...mode,
      ...(scope !== undefined && { scope }),
      ...(cost !== undefined && { cost }),
      ...(also !== undefined && { also }),
    }
    return limiter.checkNow(caller, full, hold)
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

/** A charge that a middleware made for a request: whom it asked and what, and the decision. */
class Charged {
  constructor(
    readonly asked: object,
    readonly charge: Found,
    public decision: MaybePromise<Decision>,
    readonly earlier: Charged | undefined,
  ) {}
}

// Shared by every copy of this library in a process: one may have been imported, another required.
const CHARGED = Symbol.for('headgate.charged')

/** A request, which remembers what was charged for as long as it lives. */
type Marked = { [CHARGED]?: Charged }

/** Returns the decision on the same charge, if an outer middleware has already made one for this request. */
function earlierDecision(last: Charged, asked: object, charge: Found): MaybePromise<Decision> | null {
  for (let charged: Charged | undefined = last; charged !== undefined; charged = charged.earlier) {
    if (charged.asked === asked && isSame(charged.charge, charge)) return charged.decision
  }
  return null
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
function isSame(one: Found, other: Found): boolean {
  return (
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
