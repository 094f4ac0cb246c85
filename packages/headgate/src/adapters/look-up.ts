/** Finds out for one request whether it is limited, who asks, for what, and at what cost. */
import { HeadgateError } from '../errors/headgate-error.js'
import { letFail } from '../errors/let-fail.js'
import type { AlsoAsked } from '../limiter/ask.js'
import type { Eventually } from '../store/store.js'
import type { HttpRequest } from '../subject/http-request.js'
import type { Identity } from '../subject/identify.js'
import { isPromise } from '../subject/source.js'
import { ip } from '../subject/sources.js'
import type { SubjectInput } from '../subject/subject.js'
import { systemTimers } from '../time/clock.js'
import { withinTime } from '../time/within-time.js'
import type { AnyOptions, Of } from './options.js'

/** The facts found about a request. Not validated yet, because functions may return anything. */
export interface Found {
  readonly subject: SubjectInput | readonly SubjectInput[]
  readonly tier: string | undefined
  readonly cost: number | undefined
  readonly scope: string | undefined
  readonly also: readonly Also[] | undefined
}

/** Further subjects to charge, each with its policy. */
type Also = AlsoAsked<string, string>

const LOOKUP_TIMEOUT_MS = 1_000
/** Requests that match no route share a budget, because the client chooses their paths. */
const NO_ROUTE = 'unmatched'

/**
 * Creates the function that looks a request up: null for one that is not limited. Asynchronous only if one of the
 * functions is.
 */
export function createLookUp<Native>(
  options: AnyOptions<Native>,
  read: (native: Native) => HttpRequest,
): (native: Native) => Eventually<Found | null> {
  const { skip, tier, cost, scope, perRoute, also, lookupTimeoutMs = LOOKUP_TIMEOUT_MS } = options
  const whoIs = createWhoIs(options, read)

  function findAll(native: Native): Eventually<Found> {
    const who = whoIs(native)
    let which: Eventually<Found['tier']>
    let much: Eventually<Found['cost']>
    let what: Eventually<Found['scope']>
    let others: Eventually<Found['also']>
    try {
      which = find(tier, native)
      much = find(cost, native)
      what = perRoute === true ? (read(native).route ?? NO_ROUTE) : find(scope, native)
      others = find<Native, Found['also']>(also, native)
    } catch (error) {
      for (const begun of [who, which, much, what]) letFail(begun)
      throw error
    }
    if (isPromise(who) || isPromise(which) || isPromise(much) || isPromise(what) || isPromise(others))
      return Promise.all([who, which, much, what, others]).then(toFound)
    return toFound([who, which, much, what, others])
  }

  function lookUp(native: Native): Eventually<Found | null> {
    const skipped = skip?.(native)
    if (!isPromise(skipped)) return skipped ? null : findAll(native)
    return skipped.then(isSkipped => (isSkipped ? null : findAll(native)))
  }

  return native => {
    const found = lookUp(native)
    return isPromise(found) ? withinTime(found, lookupTimeoutMs, systemTimers.after, lookUpTimeout) : found
  }
}

type Parts = [Who, Found['tier'], Found['cost'], Found['scope'], Found['also']]

function toFound([who, tier, cost, scope, also]: Parts): Found {
  return { subject: who.subject, tier: who.tier ?? tier, cost, scope, also }
}

type Who = Pick<Found, 'subject' | 'tier'>

/**
 * Creates the function that identifies the caller: by sources (including those of the gate's file), by `subject`,
 * or by the client's address.
 */
function createWhoIs<Native>(
  options: AnyOptions<Native>,
  read: (native: Native) => HttpRequest,
): (native: Native) => Eventually<Who> {
  const { gate, limiter } = options
  const identify = options.identify ?? identifyOfFile(options)
  if (identify !== undefined) {
    // A gate works out which of the subjects a rule means, and handles unknown tiers.
    const toWho = ({ subjects, tier }: Identity): Who => {
      if (gate !== undefined)
        return { subject: subjects.length === 1 ? (subjects[0] as SubjectInput) : subjects, tier }
      const isKnown = tier !== undefined && limiter?.tierNames.includes(tier)
      return { subject: subjects[0] as SubjectInput, tier: isKnown ? tier : undefined }
    }
    return native => {
      const identity = identify(read(native))
      return isPromise(identity) ? identity.then(toWho) : toWho(identity)
    }
  }
  const subject = options.subject ?? addressOf(options, read)
  return native => {
    const who = find<Native, Found['subject']>(subject, native)
    return isPromise(who) ? who.then(toSubject) : toSubject(who)
  }
}

/**
 * Returns the sources of the gate's file, unless the options identify the caller. Throws for a file that verifies tokens
 * also if `trustedProxies` replaces its sources: its callers would silently be addresses.
 */
function identifyOfFile<Native>(options: AnyOptions<Native>): AnyOptions<Native>['identify'] {
  const { gate, subject, trustedProxies, forwardedHeader } = options
  const ofFile = subject === undefined ? gate?.identify : undefined
  return trustedProxies === undefined && forwardedHeader === undefined ? ofFile : undefined
}

function toSubject(subject: Found['subject']): Who {
  return { subject, tier: undefined }
}

function find<Native, T>(of: Of<Native, T>, native: Native): Eventually<T> {
  return typeof of === 'function' ? (of as (request: Native) => Eventually<T>)(native) : of
}

/** Identifies callers by address. Those whose connection is closed or has no address share a budget. */
function addressOf<Native>(
  { trustedProxies, forwardedHeader }: AnyOptions<Native>,
  read: (native: Native) => HttpRequest,
): (native: Native) => SubjectInput {
  const source = ip({
    ...(trustedProxies && { trustedProxies }),
    ...(forwardedHeader && { forwardedHeader }),
  })
  return native => source.find(read(native)).subject
}

function lookUpTimeout(ms: number): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_LOOKUP_TIMEOUT', {
    field: 'subject',
    expected: `identify, skip, subject, tier, cost and scope to settle within ${ms} ms`,
    got: 'no answer',
  })
}
