/** Envoy's rate limit service without its wire format: a question in, statuses and headers out. */

import type { LimitVerdict, RuleLimiter } from 'headgate'
import { checkLimits, type GivenLimitsAnswer, refundLimits } from 'headgate/internal'
import type { DescriptorConfig, DescriptorLimit } from './config/descriptor-tree.js'
import { type Descriptor, type RateLimitAsk, rejectAsk } from './descriptor.js'
import { type ResolvedAsk, type ResolvedDescriptor, resolveAsk } from './limits-of-ask.js'

/** The limits cannot be checked, and such requests are to be rejected: Envoy's own failure mode decides. */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError'
}

export interface DescriptorStatus {
  readonly isOver: boolean
  /** The quota to advertise; null if unknown. */
  readonly current: Pick<DescriptorLimit, 'requestsPerUnit' | 'unit' | 'name'> | null
  readonly remaining: number
  /** If over the limit, until there is room again, else until everything is free. Null if unknown. */
  readonly untilResetMs: number | null
}

export interface RateLimitReply {
  readonly isOver: boolean
  /** One for each descriptor, in order. */
  readonly statuses: readonly DescriptorStatus[]
  /** For the response to the client. */
  readonly headers: readonly (readonly [string, string])[]
  readonly metadata: Readonly<Record<string, unknown>> | null
}

export interface RateLimitServiceOptions {
  readonly limiter: RuleLimiter
  /** Returns the current limits. */
  config(): DescriptorConfig
  /** Whether nothing is ever reported as over its limit. */
  readonly shadow: boolean
  /** Whether responses carry `RateLimit-*` of the tightest limit. */
  readonly headers: boolean
  /** Whether Envoy gets the question and the metadata of its limits. */
  readonly metadata: boolean
}

/** Decides a question. Rejects with an `AskError` for a bad one, and an `UnavailableError` if nobody can decide. */
export type RateLimitService = (ask: RateLimitAsk) => Promise<RateLimitReply>

const MAX_UINT32 = 2 ** 32 - 1
const UNLIMITED_STATUS: DescriptorStatus = {
  isOver: false,
  current: null,
  remaining: MAX_UINT32,
  untilResetMs: null,
}
const UNKNOWN_STATUS: DescriptorStatus = { ...UNLIMITED_STATUS, remaining: 0 }

export function createRateLimitService(options: RateLimitServiceOptions): RateLimitService {
  const { limiter, config, shadow } = options
  return async ask => {
    rejectAsk(ask)
    const resolved = resolveAsk(config(), ask, shadow)
    if (resolved.refunds.length > 0) await refundLimits(limiter, resolved.refunds)
    const answer = await checkLimits(limiter, resolved.given)
    const { decision } = answer
    // Nobody reports when the request ends.
    decision.abandon()
    if (decision.source === 'closed') throw new UnavailableError('the limits cannot be looked at')
    const statuses = resolved.descriptors.map(one => statusOf(one, resolved, answer))
    const isOver = !decision.allowed
    return {
      isOver,
      statuses,
      headers: [
        ...(isOver && decision.retryAfterMs !== null ? [retryAfter(decision.retryAfterMs)] : []),
        ...(options.headers ? quotaHeaders(statuses) : []),
      ],
      metadata: options.metadata ? metadataOf(ask, resolved.descriptors, statuses) : null,
    }
  }
}

function statusOf(
  { limit, place }: ResolvedDescriptor,
  { enforced }: ResolvedAsk,
  answer: GivenLimitsAnswer,
): DescriptorStatus {
  if (limit === null) return UNKNOWN_STATUS
  if (place === null) return UNLIMITED_STATUS
  const verdict = verdictAt(place, enforced, answer)
  if (verdict === null) return UNKNOWN_STATUS
  const isOver = !verdict.allowed && limit.mode !== 'shadow'
  const { source } = answer.decision
  // The numbers of this process alone are nobody's quota.
  const isKnown = source === 'redis' || source === 'memory'
  const { requestsPerUnit, unit, name } = limit
  return {
    isOver,
    current: isKnown ? { requestsPerUnit, unit, name } : null,
    remaining: isKnown ? verdict.remaining : 0,
    untilResetMs: isOver ? verdict.retryAfterMs : verdict.resetAfterMs,
  }
}

/** Returns the verdict of the first alternative, or of the charged one if that has the descriptor. */
function verdictAt(
  { part, index }: NonNullable<ResolvedDescriptor['place']>,
  enforced: number,
  { charged, verdicts, shadow }: GivenLimitsAnswer,
): LimitVerdict | null {
  if (part === 'shadow') return shadow[index] ?? null
  const inFirst = verdicts[0]?.[part === 'quota' ? enforced + index : index] ?? null
  if (charged <= 0) return inFirst
  if (part === 'enforced') return verdicts[charged]?.[index] ?? null
  return charged === index + 1 ? (verdicts[charged]?.[enforced] ?? null) : inFirst
}

function retryAfter(ms: number): readonly [string, string] {
  return ['Retry-After', String(Math.max(1, Math.ceil(ms / 1000)))]
}

/** Of the limit with the least left. */
function quotaHeaders(statuses: readonly DescriptorStatus[]): readonly (readonly [string, string])[] {
  const known = statuses.filter(({ current }) => current !== null)
  const [first, ...others] = known
  if (first === undefined) return []
  const tightest = others.reduce((least, one) => (one.remaining < least.remaining ? one : least), first)
  return [
    ['RateLimit-Limit', String(tightest.current?.requestsPerUnit ?? 0)],
    ['RateLimit-Remaining', String(tightest.remaining)],
    ['RateLimit-Reset', String(Math.ceil((tightest.untilResetMs ?? 0) / 1000))],
  ]
}

function metadataOf(
  { domain, descriptors, hitsAddend }: RateLimitAsk,
  resolved: readonly ResolvedDescriptor[],
  statuses: readonly DescriptorStatus[],
): Readonly<Record<string, unknown>> {
  const passed = resolved.filter((_, index) => statuses[index]?.isOver === false)
  const metadata = Object.assign({}, ...passed.map(({ limit }) => limit?.metadata ?? {})) as object
  return {
    domain,
    descriptors: descriptors.map(describeDescriptor),
    ...(hitsAddend > 0 && { hitsAddend }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  }
}

function describeDescriptor({ entries, limit, hitsAddend }: Descriptor): Readonly<Record<string, unknown>> {
  return {
    entries: entries.map(({ key, value }) => `${key}=${value}`),
    ...(limit !== null && {
      limit: { requestsPerUnit: limit.requestsPerUnit, unit: limit.unit.toUpperCase() },
    }),
    ...(hitsAddend !== null && { hitsAddend }),
  }
}
