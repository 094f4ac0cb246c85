/**
 * Finds out for one request whether it is limited, who asks, for what, and at what cost. A function of the app that
 * fails, or returns what is of no use, frees nobody: the caller is charged to the next source, then to the address.
 */
import type { AlsoCharged } from '../check/check-options.js'
import { HeadgateError } from '../errors/headgate-error.js'
import type { MaybePromise } from '../store/store.js'
import { limitedAddress } from '../subject/client-address.js'
import type { HttpRequest } from '../subject/http-request.js'
import type { Identity, PerAddress, Within } from '../subject/identify.js'
import { ip, isPromise } from '../subject/sources.js'
import { ANONYMOUS, namesNobody, type SubjectInput } from '../subject/subject.js'
import { systemTimers } from '../time/clock.js'
import type { WarnOnce } from './log.js'
import { type AnyLimiterOptions, type Of, rulesOf } from './options.js'

/** The facts found about a request. */
export interface Found {
  readonly subject: SubjectInput | readonly SubjectInput[]
  readonly policy: string | undefined
  readonly tier: string | undefined
  readonly cost: number | undefined
  readonly scope: string | undefined
  readonly also: readonly Also[] | undefined
  readonly perAddress: PerAddress | undefined
  /** The first error of a function that threw, rejected or did not settle in time; null if none did. */
  readonly failure: { readonly error: unknown } | null
}

/** Further subjects to charge, each with its policy. */
type Also = AlsoCharged<string, string>

const LOOKUP_TIMEOUT_MS = 1_000
/** Requests that match no route share a budget, because the client chooses their paths. */
const NO_ROUTE = 'unmatched'
const MAX_COST = 2 ** 32 - 1

/**
 * Creates the function that looks a request up: null for one that is not limited. Asynchronous only if one of the
 * functions is.
 */
export function createLookUp<Native>(
  options: AnyLimiterOptions<Native>,
  read: (native: Native) => HttpRequest,
  warn: WarnOnce,
): (native: Native) => MaybePromise<Found | null> {
  const { skip, cost, scope, perRoute, also, lookupTimeoutMs = LOOKUP_TIMEOUT_MS } = options
  const tier = options.tier as Of<Native, string | undefined>
  const policy = options.policy as Of<Native, string | undefined>
  const callerOf = createCallerOf(options, read, warn)
  const usable = createUsable(options, warn)

  function toFound([caller, policy, tier, cost, scope, also]: Parts, { failure }: Run): Found {
    return {
      subject: caller.subject,
      policy: usable.policy(policy),
      tier: usable.tier(caller.tier ?? tier),
      cost: usable.cost(cost),
      scope: usable.scope(scope),
      also: usable.also(also),
      perAddress: caller.perAddress,
      failure,
    }
  }

  function findAll(native: Native, run: Run): MaybePromise<Found> {
    const caller = callerOf(native, run)
    const itsPolicy = run.look<Native, string | undefined>(policy, native)
    const itsTier = run.look<Native, string | undefined>(tier, native)
    const itsCost = run.look<Native, number | undefined>(cost, native)
    const itsScope = perRoute === true ? (read(native).route ?? NO_ROUTE) : run.look(scope, native)
    const others = run.look<Native, Found['also']>(also, native)
    if (
      isPromise(caller) ||
      isPromise(itsPolicy) ||
      isPromise(itsTier) ||
      isPromise(itsCost) ||
      isPromise(itsScope) ||
      isPromise(others)
    )
      return Promise.all([caller, itsPolicy, itsTier, itsCost, itsScope, others]).then(parts =>
        toFound(parts, run),
      )
    return toFound([caller, itsPolicy, itsTier, itsCost, itsScope, others], run)
  }

  return function lookUp(native) {
    const run = new Run(lookupTimeoutMs)
    const skipped = skip === undefined ? false : run.look<Native, boolean | undefined>(skip, native)
    const found = isPromise(skipped)
      ? skipped.then(isSkipped => (isSkipped ? null : findAll(native, run)))
      : skipped
        ? null
        : findAll(native, run)
    return isPromise(found) ? found.finally(() => run.end()) : found
  }
}

type Parts = [Caller, Found['policy'], Found['tier'], Found['cost'], Found['scope'], Found['also']]

type Caller = Pick<Found, 'subject' | 'tier' | 'perAddress'>

/** The look-ups of one request, which have one deadline together. */
class Run {
  failure: Found['failure'] = null
  private late: Promise<never> | null = null
  private cancel: (() => void) | null = null

  constructor(private readonly timeoutMs: number) {}

  /** Calls a function of the app, or returns the value that stands in its place. What fails is undefined. */
  look<Native, T>(of: Of<Native, T>, native: Native): MaybePromise<T | undefined> {
    if (typeof of !== 'function') return of
    try {
      const found = (of as (request: Native) => MaybePromise<T>)(native)
      return isPromise(found) ? this.settle(Promise.race([found, this.whenLate()])) : found
    } catch (error) {
      return this.note(error)
    }
  }

  /** Asks sources, each of which has the deadline, so that one that hangs does not lose what the others know. */
  ask(identify: (within: Within) => MaybePromise<Identity>): MaybePromise<Identity | undefined> {
    try {
      const found = identify(work => Promise.race([work, this.whenLate()]))
      return isPromise(found) ? this.settle(Promise.race([found, this.soonAfterLate()])) : found
    } catch (error) {
      return this.note(error)
    }
  }

  private settle<T>(found: Promise<T>): Promise<T | undefined> {
    return found.catch(error => this.note(error))
  }

  private whenLate(): Promise<never> {
    this.late ??= new Promise((_, reject) => {
      this.cancel = systemTimers.after(this.timeoutMs, () => reject(lookUpTimeout(this.timeoutMs)))
    })
    return this.late
  }

  private soonAfterLate(): Promise<never> {
    return this.whenLate().catch(
      error => new Promise<never>((_, reject) => void systemTimers.after(1, () => reject(error))),
    )
  }

  note(error: unknown): undefined {
    this.failure ??= { error }
  }

  end(): void {
    this.cancel?.()
  }
}

/**
 * Creates the function that identifies the caller: by sources (including those of the policy file), by `subject`,
 * or by the client's address.
 */
function createCallerOf<Native>(
  options: AnyLimiterOptions<Native>,
  read: (native: Native) => HttpRequest,
  warn: WarnOnce,
): (native: Native, run: Run) => MaybePromise<Caller> {
  const identify = options.identify ?? identifyOfFile(options)
  const noticeProxy = createNoticeProxy(options, warn)
  const addressOf = createAddressOf(options, read, warn, noticeProxy)
  if (identify !== undefined) {
    const toCaller = createToCaller(options, warn)
    return (native, run) => {
      const request = read(native)
      const identity = run.ask(within => identify(request, within))
      const conclude = (found: Identity | undefined): Caller => {
        if (!Array.isArray(found?.subjects) || found.subjects.length === 0) return byName(addressOf(native))
        noticeProxy(request, found.subjects[0])
        return toCaller(found, run)
      }
      return isPromise(identity) ? identity.then(conclude) : conclude(identity)
    }
  }
  const { subject } = options
  if (subject === undefined || subject === null) return native => byName(addressOf(native))
  // A constant was validated when the middleware was made.
  if (typeof subject !== 'function') return () => byName(subject)
  const keepNamed = createKeepNamed(options, warn)
  return (native, run) => {
    const found = run.look<Native, unknown>(subject, native)
    const conclude = (named: unknown): Caller => byName(keepNamed(named) ?? addressOf(native))
    return isPromise(found) ? found.then(conclude) : conclude(found)
  }
}

/** Creates the function that turns what sources found into whom to charge. */
function createToCaller<Native>(
  options: AnyLimiterOptions<Native>,
  warn: WarnOnce,
): (identity: Identity, run: Run) => Caller {
  const { limiter } = options
  const isByRules = rulesOf(options) !== null
  return ({ subjects, tier, perAddress, failure, nameless }, run) => {
    if (failure !== undefined) run.note(failure.error)
    if (nameless !== undefined) warnOfNobody(warn, 'identify', nameless)
    const [first] = subjects as [SubjectInput]
    if (first === ANONYMOUS || perAddress?.address === ANONYMOUS) warnOfNoAddress(warn)
    // A limiter with rules works out which of the subjects a rule means, and handles unknown tiers.
    if (isByRules) return { subject: subjects.length === 1 ? first : subjects, tier, perAddress }
    const isKnown = tier !== undefined && limiter.tierNames.includes(tier)
    return { subject: first, tier: isKnown ? tier : undefined, perAddress }
  }
}

/** Creates the function that keeps the subjects that name somebody; null if none does. */
function createKeepNamed<Native>(
  options: AnyLimiterOptions<Native>,
  warn: WarnOnce,
): (found: unknown) => Found['subject'] | null {
  const isByRules = rulesOf(options) !== null
  return found => {
    // The way to say that a request has no such caller.
    if (found === undefined || found === null) return null
    const all: readonly unknown[] = Array.isArray(found) && isByRules ? found : [found]
    const named = all.filter((one): one is SubjectInput => {
      const why = namesNobody(one)
      if (why !== null) warnOfNobody(warn, 'subject', why)
      return why === null
    })
    return named.length > 1 ? named : (named[0] ?? null)
  }
}

/**
 * Returns the sources of the policy file, unless the options identify the caller. Throws for a file that verifies tokens
 * also if `trustedProxies` replaces its sources: its callers would silently be addresses.
 */
function identifyOfFile<Native>(options: AnyLimiterOptions<Native>): AnyLimiterOptions<Native>['identify'] {
  const { subject, trustedProxies, forwardedHeader } = options
  const ofFile = subject === undefined ? rulesOf(options)?.identify : undefined
  return trustedProxies === undefined && forwardedHeader === undefined ? ofFile : undefined
}

function byName(subject: Found['subject']): Caller {
  return { subject, tier: undefined, perAddress: undefined }
}

/**
 * Identifies callers by address: as the options say, or the policy file. Those whose connection is closed or has no
 * address share a budget.
 */
function createAddressOf<Native>(
  options: AnyLimiterOptions<Native>,
  read: (native: Native) => HttpRequest,
  warn: WarnOnce,
  noticeProxy: NoticeProxy,
): (native: Native) => SubjectInput {
  const { trustedProxies, forwardedHeader } = options
  const rules = rulesOf(options)
  const isOwn = trustedProxies !== undefined || forwardedHeader !== undefined
  const source = ip({
    ...(trustedProxies && { trustedProxies }),
    ...(forwardedHeader && { forwardedHeader }),
  })
  return native => {
    const request = read(native)
    const subject = rules === null || isOwn ? source.find(request).subject : rules.addressOf(request)
    if (subject === ANONYMOUS) warnOfNoAddress(warn)
    noticeProxy(request, subject)
    return subject
  }
}

/**
 * Creates the function that warns once of a proxy that is not believed, behind which everybody is one caller. Nothing is
 * noticed where the options say whom to trust.
 */
function createNoticeProxy<Native>(
  { trustedProxies }: AnyLimiterOptions<Native>,
  warn: WarnOnce,
): NoticeProxy {
  const settings = "trustedProxies: ['10.0.0.0/8'] with the addresses of your proxies, or { hops: 1 }"
  let isDone = trustedProxies !== undefined
  let isFirst = true
  let peer: string | undefined
  let nameOfPeer: string | null = null
  return (request, subject) => {
    if (isDone) return
    if (isFirst && request.trust === 'everybody') {
      isDone = true
      warn(
        'WARN_HEADGATE_TRUSTS_EVERYBODY',
        `trustedProxies: the framework's setting believes whatever address a client writes into a header, so the address of the connection is charged instead; write ${settings}`,
      )
      return
    }
    isFirst = false
    if ((request.header('x-forwarded-for') ?? request.header('forwarded')) === undefined) return
    if (request.peer !== peer) {
      peer = request.peer
      nameOfPeer = `ip:${limitedAddress(peer)}`
    }
    if (subject !== nameOfPeer) return
    isDone = true
    warn(
      'WARN_HEADGATE_PROXY_NOT_TRUSTED',
      `trustedProxies: a header names the client, but the connection comes from an address that is not trusted, and is charged: behind a proxy, everybody is then one caller; if it is your proxy, write ${settings}`,
    )
  }
}

/** Looks at a request and the subject of its address. */
type NoticeProxy = (request: HttpRequest, subject: unknown) => void

/** Creates functions that replace values of no use, which would otherwise fail the decision. */
function createUsable<Native>(options: AnyLimiterOptions<Native>, warn: WarnOnce) {
  const { limiter, policy } = options
  const { policyNames, tierNames } = limiter
  const isByRules = rulesOf(options) !== null
  const strictest = tierNames.includes('anonymous') ? 'anonymous' : tierNames[0]
  const warnOf = (field: string, instead: string) =>
    warn('WARN_HEADGATE_UNUSABLE_VALUE', `${field}: a function returned what is of no use; ${instead}`)

  return {
    policy(name: unknown): string | undefined {
      if (policy === undefined || policyNames.includes(name as string)) return name as string | undefined
      warnOf('policy', `such requests are charged to ${policyNames[0]}`)
      return policyNames[0]
    },
    /** A limiter that goes by tiers alone has no limits for a caller without one. */
    tier(tier: unknown): string | undefined {
      if (isByRules) return typeof tier === 'string' ? tier : undefined
      if (policy !== undefined || tierNames.includes(tier as string)) return tier as string | undefined
      warnOf('tier', `such callers are of tier ${strictest}`)
      return strictest
    },
    /** A client may have chosen the number: what is too much stays too much. */
    cost(cost: unknown): number | undefined {
      if (cost === undefined || (Number.isInteger(cost) && Number(cost) >= 0 && Number(cost) <= MAX_COST))
        return cost as number | undefined
      warnOf('cost', 'it is rounded up to a whole number, or 1 if it is none')
      if (typeof cost !== 'number' || !(cost > 0)) return 1
      return Math.min(Math.ceil(cost), MAX_COST)
    },
    scope(scope: unknown): string | undefined {
      if (scope === undefined || (typeof scope === 'string' && scope !== '')) return scope
      warnOf('scope', 'the request is charged to the one it has without')
      return undefined
    },
    also(also: unknown): readonly Also[] | undefined {
      if (also === undefined) return undefined
      const all: readonly unknown[] = Array.isArray(also) ? also : []
      const charged = all.filter((one): one is Also => {
        const { subject, policy, tier } = (one ?? {}) as Also
        const isKnown = policy === undefined ? tierNames.includes(tier) : policyNames.includes(policy)
        return isKnown && namesNobody(subject) === null
      })
      if (charged.length < all.length || !Array.isArray(also))
        warnOf('also', 'only what names somebody, and a policy or tier of the limiter, is charged')
      return charged
    },
  }
}

function warnOfNobody(warn: WarnOnce, field: string, why: string): void {
  warn(
    'WARN_HEADGATE_NAMES_NOBODY',
    `${field}: expected who is asking; got ${why}: such callers are charged to the next source, or to their address (return null for a caller that you do not know)`,
  )
}

function warnOfNoAddress(warn: WarnOnce): void {
  warn(
    'WARN_HEADGATE_NO_ADDRESS',
    `subject: no subject, and no address of the connection: all such requests share one budget, ${ANONYMOUS}`,
  )
}

function lookUpTimeout(ms: number): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_LOOKUP_TIMEOUT', {
    field: 'subject',
    expected: `identify, skip, subject, policy, tier, cost and scope to settle within ${ms} ms`,
    got: 'no answer',
  })
}
