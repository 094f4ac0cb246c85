import { MAX_UNITS } from '../algorithms/algorithm.js'
import { formatDurationUs } from '../algorithms/durations.js'
import { HeadgateError } from '../errors/headgate-error.js'
import { TIER_POLICY } from '../policy/policies.js'
import { Decision, type LimitVerdict, policyOf } from './decision.js'
import {
  advertisedLimit,
  type HeaderField,
  type HideableName,
  limitNumber,
  printable,
  type ResponseOptions,
  retryAfterSeconds,
} from './headers.js'

/** The body of a denial, as in RFC 9457 and the rate limit draft, with our own members in camel case. */
export interface ProblemBody {
  readonly type: string
  readonly title: string
  readonly status: 429 | 503
  readonly detail: string
  /** The limits that denied, by their names in `RateLimit-Policy`. */
  readonly 'violated-policies': readonly string[]
  /** Null if no wait is long enough. */
  readonly retryAfterMs: number | null
  /** Null if no quota is known. */
  readonly limit: number | null
  /** How many may come at once, where that is another number. */
  readonly burst?: number
  readonly remaining: number | null
  /** Null if it is hidden. */
  readonly policy: string | null
  /** Null if the caller has none, or it is hidden. */
  readonly tier: string | null
  /** A reference the caller can give to an operator, who finds the rejection by it; only if decisions are counted. */
  readonly reference?: string
}

/** The response that tells a client it was denied. */
export interface Problem {
  readonly status: 429 | 503
  /** About the body; to be sent with those of `decisionHeaders`. */
  readonly headers: readonly HeaderField[]
  readonly body: ProblemBody
}

const QUOTA_EXCEEDED = {
  type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  title: 'Quota exceeded',
  status: 429,
} as const
const REDUCED_CAPACITY = {
  type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
  title: 'Temporarily reduced capacity',
  status: 503,
} as const

const BANNED = {
  type: 'https://unpkg.com/headgate/docs/errors.md#banned',
  title: 'Temporarily banned',
  status: 429,
} as const

/**
 * Returns the problem response to a denied decision: 429, or 503 if the limits could not be checked. It names
 * policies and numbers, never the subject. Throws for an allowed decision.
 */
export function decisionProblem(decision: Decision, options: ResponseOptions = {}): Problem {
  if (decision.allowed) {
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
      field: 'decision',
      expected: 'a denied one',
      got: 'an allowed one',
    })
  }
  const binding = advertisedLimit(decision)
  const kind = kindOf(decision)
  const { laterByMs = 0, hide = [] } = options
  const shown = { laterByMs, hide }
  const { retryAfterMs } = decision
  return {
    status: kind.status,
    headers: [
      ['Content-Type', 'application/problem+json'],
      // A cached denial would be served to clients that have quota left.
      ['Cache-Control', 'no-store'],
    ],
    body: {
      ...kind,
      detail: binding === null ? unknownDetail(decision, shown) : exceededDetail(decision, binding, shown),
      'violated-policies': violatedPolicies(decision, hide),
      retryAfterMs: retryAfterMs === null ? null : retryAfterMs + laterByMs,
      limit: binding?.quota.limit ?? null,
      ...(binding != null && binding.quota.burst !== null && { burst: binding.quota.burst }),
      remaining: binding?.remaining ?? null,
      policy: hide.includes('policy') ? null : decision.policy,
      tier: hide.includes('tier') ? null : decision.tier,
      ...(decision.reference !== null && { reference: decision.reference }),
    },
  }
}

function kindOf({ source, reason }: Decision): Pick<ProblemBody, 'type' | 'title' | 'status'> {
  if (source === 'closed') return REDUCED_CAPACITY
  return reason === 'banned' ? BANNED : QUOTA_EXCEEDED
}

/** By their names in the headers. */
function violatedPolicies(decision: Decision, hide: readonly HideableName[]): string[] {
  if (decision.source === 'closed') return []
  const isHidden = hide.includes('policy')
  return decision.verdicts.flatMap(({ allowed, name }, index) => {
    if (allowed) return []
    return isHidden ? limitNumber(index) : printable(name)
  })
}

function unknownDetail(decision: Decision, options: Required<ResponseOptions>): string {
  if (decision.reason === 'banned') return `This caller is banned for now; ${advice(decision, options)}.`
  return decision.source === 'closed'
    ? `Limits cannot be checked at the moment; ${advice(decision, options)}.`
    : `Too many requests for this server at the moment; ${advice(decision, options)}.`
}

function exceededDetail(
  decision: Decision,
  binding: LimitVerdict,
  options: Required<ResponseOptions>,
): string {
  const { cost } = decision
  const whose = whoseLimit(decision, options.hide)
  if (decision.reason === 'exceeds-capacity') {
    if (binding.limit === 0) return `No requests are allowed for ${whose}; ${advice(decision, options)}.`
    // The highest cost stands for an unbounded one, such as that of a GraphQL fragment that spreads itself.
    const costs = cost === MAX_UNITS ? 'cannot be counted, and costs' : `costs ${cost},`
    return `The request ${costs} more than the ${binding.limit} that ${whose} allows at once; ${advice(decision, options)}.`
  }
  if (binding.quota.unit === 'concurrent-requests') {
    const many = binding.quota.limit === 1 ? '1 request is' : `${binding.quota.limit} requests are`
    return `${many} in flight, as many as ${whose} allows at once; ${advice(decision, options)}.`
  }
  const { limit: sustained, burst } = binding.quota
  const unit = countsTokens(decision, binding) ? 'tokens' : 'requests'
  const perWindow = `${sustained} ${burst === null ? `${unit} ` : ''}per ${windowText(binding)}`
  const limit = `Limit of ${burst === null ? '' : `${burst} ${unit} at once, `}${perWindow} for ${whose}`
  // An expensive request can be denied while cheaper ones still fit, so "used up" would be untrue.
  return binding.remaining === 0
    ? `${limit} is used up; ${advice(decision, options)}.`
    : `${limit} has ${binding.remaining} left and the request costs ${cost}; ${advice(decision, options)}.`
}

/** A policy that meters tokens may have a limit of requests beside. */
function countsTokens(decision: Decision, { name }: LimitVerdict): boolean {
  if (!decision.tokens.some(({ policy }) => policy === policyOf(name))) return false
  return !Decision.checkOf(decision).plan.limits.some(named => named.name === name && named.countsRequests)
}

function whoseLimit({ policy, tier }: Decision, hide: readonly HideableName[]): string {
  const isOfTier = policy === TIER_POLICY
  if (hide.includes(isOfTier ? 'tier' : 'policy')) return 'this caller'
  return isOfTier ? `tier ${tier}` : `policy ${policy}`
}

function advice(decision: Decision, { laterByMs }: Required<ResponseOptions>): string {
  const seconds = retryAfterSeconds(decision, laterByMs)
  return seconds === null ? 'retrying will not help' : `try again in ${seconds} s`
}

/** To the millisecond: a bucket's window is a quotient, and its microseconds are meaningless. */
function windowText({ quota }: LimitVerdict): string {
  return formatDurationUs(Math.ceil(quota.windowUs / 1000) * 1000)
}
