/**
 * Finds out for one request whether it is limited, who asks, for what, and at what cost. A function of the app that
 * fails, or returns what is of no use, frees nobody: the caller is charged to the next source, then to the address.
 */
import { MAX_UNITS } from '../algorithms/algorithm.js'
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
  const nameCaller = createNameCaller(options, read, warn)
  const usable = createUsable(options, warn)

  function findAll(native: Native, found: LookUp): MaybePromise<Found> {
    const named = nameCaller(native, found)
    const itsPolicy = found.look<Native, string | undefined>(policy, native)
    const itsTier = found.look<Native, string | undefined>(tier, native)
    const itsCost = found.look<Native, number | undefined>(cost, native)
    const itsScope = perRoute === true ? (read(native).route ?? NO_ROUTE) : found.look(scope, native)
    const others = found.look<Native, Found['also']>(also, native)
    if (
      isPromise(named) ||
      isPromise(itsPolicy) ||
      isPromise(itsTier) ||
      isPromise(itsCost) ||
      isPromise(itsScope) ||
      isPromise(others)
    )
      return awaitAll(found, named, [itsPolicy, itsTier, itsCost, itsScope, others])
    return keepUsable(found, itsPolicy, itsTier, itsCost, itsScope, others)
  }

  async function awaitAll(found: LookUp, named: unknown, parts: readonly unknown[]): Promise<Found> {
    const [policy, tier, cost, scope, also] = await Promise.all([...parts, named])
    return keepUsable(found, policy, tier, cost, scope, also)
  }

  function keepUsable(
    found: LookUp,
    policy: unknown,
    tier: unknown,
    cost: unknown,
    scope: unknown,
    also: unknown,
  ): Found {
    found.policy = usable.policy(policy)
    found.tier = usable.tier(found.tier ?? tier)
    found.cost = usable.cost(cost)
    found.scope = usable.scope(scope)
    found.also = usable.also(also)
    return found
  }

  async function unlessSkipped(native: Native, found: LookUp, skipped: unknown): Promise<Found | null> {
    return (await skipped) ? null : findAll(native, found)
  }

  return function lookUp(native) {
    const found = new LookUp(lookupTimeoutMs)
    const skipped = skip === undefined ? false : found.look<Native, boolean | undefined>(skip, native)
    if (isPromise(skipped)) return found.until(unlessSkipped(native, found, skipped))
    const result = skipped ? null : findAll(native, found)
    return isPromise(result) ? found.until(result) : result
  }
}

/** A request that is being looked up, within one deadline for all functions together, and what was found. */
class LookUp implements Found {
  subject: Found['subject'] = ANONYMOUS
  policy: Found['policy'] = undefined
  tier: Found['tier'] = undefined
  cost: Found['cost'] = undefined
  scope: Found['scope'] = undefined
  also: Found['also'] = undefined
  perAddress: Found['perAddress'] = undefined
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

  /** Ends the deadline once everything is found. */
  until<T>(result: Promise<T>): Promise<T> {
    return result.finally(() => this.cancel?.())
  }
}

/**
 * Creates the function that finds whom to charge: by sources (including those of the policy file), by `subject`, or by
 * the client's address.
 */
function createNameCaller<Native>(
  options: AnyLimiterOptions<Native>,
  read: (native: Native) => HttpRequest,
  warn: WarnOnce,
): (native: Native, found: LookUp) => MaybePromise<void> {
  const identify = options.identify ?? identifyOfFile(options)
  const noticeProxy = createNoticeProxy(options, warn)
  const addressOf = createAddressOf(options, read, warn, noticeProxy)
  if (identify !== undefined) {
    const nameIdentified = createNameIdentified(options, warn)
    return (native, found) => {
      const request = read(native)
      const identity = found.ask(within => identify(request, within))
      const conclude = (known: Identity | undefined): void => {
        if (!Array.isArray(known?.subjects) || known.subjects.length === 0) {
          found.subject = addressOf(native)
          return
        }
        noticeProxy(request, known.subjects[0])
        nameIdentified(known, found)
      }
      return isPromise(identity) ? identity.then(conclude) : conclude(identity)
    }
  }
  const { subject } = options
  if (typeof subject === 'function') {
    const keepNamed = createKeepNamed(options, warn)
    const conclude = (native: Native, found: LookUp, named: unknown): void => {
      found.subject = keepNamed(named) ?? addressOf(native)
    }
    return (native, found) => {
      const named = found.look<Native, unknown>(subject, native)
      if (isPromise(named)) return concludeLater(native, found, named)
      conclude(native, found, named)
    }
    async function concludeLater(native: Native, found: LookUp, named: Promise<unknown>): Promise<void> {
      conclude(native, found, await named)
    }
  }
  return (native, found) => {
    // A constant was validated when the middleware was made.
    found.subject = subject ?? addressOf(native)
  }
}

/** Creates the function that turns what sources found into whom to charge. */
function createNameIdentified<Native>(
  options: AnyLimiterOptions<Native>,
  warn: WarnOnce,
): (identity: Identity, found: LookUp) => void {
  const { limiter } = options
  const isByRules = rulesOf(options) !== null
  return ({ subjects, tier, perAddress, failure, nameless }, found) => {
    if (failure !== undefined) found.note(failure.error)
    if (nameless !== undefined) warnOfNobody(warn, 'identify', nameless)
    const [first] = subjects as [SubjectInput]
    if (first === ANONYMOUS || perAddress?.address === ANONYMOUS) warnOfNoAddress(warn)
    // A limiter with rules works out which of the subjects a rule means, and handles unknown tiers.
    found.subject = isByRules && subjects.length > 1 ? subjects : first
    found.tier = isByRules || (tier !== undefined && limiter.tierNames.includes(tier)) ? tier : undefined
    found.perAddress = perAddress
  }
}

/** Creates the function that keeps the subjects that name somebody; null if none does. */
function createKeepNamed<Native>(
  options: AnyLimiterOptions<Native>,
  warn: WarnOnce,
): (found: unknown) => Found['subject'] | null {
  const isByRules = rulesOf(options) !== null
  function namesSomebody(one: unknown): one is SubjectInput {
    const why = namesNobody(one)
    if (why !== null) warnOfNobody(warn, 'subject', why)
    return why === null
  }
  return found => {
    // The way to say that a request has no such caller.
    if (found === undefined || found === null) return null
    if (!isByRules || !Array.isArray(found)) return namesSomebody(found) ? found : null
    const named = found.filter(namesSomebody)
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
      // A constant was validated when the middleware was made.
      if (typeof policy !== 'function' || policyNames.includes(name as string))
        return name as string | undefined
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
      if (cost === undefined || (Number.isInteger(cost) && Number(cost) >= 0 && Number(cost) <= MAX_UNITS))
        return cost as number | undefined
      warnOf('cost', 'it is rounded up to a whole number, or 1 if it is none')
      if (typeof cost !== 'number' || !(cost > 0)) return 1
      return Math.min(Math.ceil(cost), MAX_UNITS)
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
