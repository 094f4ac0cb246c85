/** Looks up for one request whether it is limited at all, who asks, for what and how much. */
import { letFail } from '../errors/let-fail.js'
import type { AlsoAsked } from '../limiter/ask.js'
import type { Eventually } from '../store/store.js'
import type { HttpRequest } from '../subject/http-request.js'
import type { Identity } from '../subject/identify.js'
import { isPromise } from '../subject/source.js'
import { ip } from '../subject/sources.js'
import type { SubjectInput } from '../subject/subject.js'
import type { AnyOptions, Of } from './options.js'
import { withinTime } from './within-time.js'

/** The facts found about a request. Not checked yet: functions return what they like. */
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
/** Requests that no route matched share a budget: their paths are the client's to choose. */
const NO_ROUTE = 'unmatched'

/** Makes the function that looks a request up: null for one that is not limited. Waits only where a function does. */
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
    return isPromise(found) ? withinTime(found, lookupTimeoutMs) : found
  }
}

type Parts = [Who, Found['tier'], Found['cost'], Found['scope'], Found['also']]

function toFound([who, tier, cost, scope, also]: Parts): Found {
  return { subject: who.subject, tier: who.tier ?? tier, cost, scope, also }
}

type Who = Pick<Found, 'subject' | 'tier'>

/** Finds who is asking: by sources, those of the gate's file among them, by `subject`, or by the client's address. */
function createWhoIs<Native>(
  options: AnyOptions<Native>,
  read: (native: Native) => HttpRequest,
): (native: Native) => Eventually<Who> {
  const { gate, limiter } = options
  const identify = options.identify ?? identifyOfFile(options)
  if (identify !== undefined) {
    // A gate finds out which of the subjects a rule means, and what to do about a tier that it does not know.
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

/** The sources of the gate's file, where nothing else is said of who is asking. */
function identifyOfFile<Native>(options: AnyOptions<Native>): AnyOptions<Native>['identify'] {
  const { gate, subject, trustedProxies, forwardedHeader } = options
  if (subject !== undefined || trustedProxies !== undefined || forwardedHeader !== undefined) return undefined
  return gate?.identify
}

function toSubject(subject: Found['subject']): Who {
  return { subject, tier: undefined }
}

function find<Native, T>(of: Of<Native, T>, native: Native): Eventually<T> {
  return typeof of === 'function' ? (of as (request: Native) => Eventually<T>)(native) : of
}

/** The client's address. Those whose connection is already gone, or has none, share a budget. */
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
