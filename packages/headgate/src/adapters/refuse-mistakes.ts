/**
 * Options are validated when a middleware is created, because one that cannot limit anybody would let every request
 * pass.
 */
import { refuseHeaderMistakes } from '../decision/headers.js'
import { unexpected } from '../errors/headgate-error.js'
import { refuseUnknown } from '../errors/refuse-unknown.js'
import type { Limiter } from '../limiter/limiter.js'
import { parseFailureMode } from '../policy/config.js'
import { parseRefundBound } from '../policy/refund-rule.js'
import { createSubjectNamer } from '../subject/subject.js'
import { type AnyOptions, type CommonOptions, rulesOf } from './options.js'

const COMMON = [
  'subject',
  'tier',
  'cost',
  'scope',
  'perRoute',
  'skip',
  'onDecision',
  'onDenied',
  'headers',
  'hide',
  'refundIf',
  'body',
  'contentType',
  'retryAfterJitterMs',
  'trustedProxies',
  'forwardedHeader',
  'identify',
  'lookupTimeoutMs',
  'logger',
  'onError',
]
const NAMED = ['policy', 'also', 'onStoreFailure'] as const
const FUNCTIONS = ['skip', 'onDecision', 'onDenied', 'body', 'onError'] as const
const CONTENT_TYPE = /^[\w.+-]+\/[\w.+-]+(?:; ?[\w.=+-]+)*$/
/** The longest a timer of Node can wait. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** Throws for the first invalid option, by name. */
export function refuseMistakes<Native>(options: AnyOptions<Native>, knowsPeer: boolean): void {
  if (typeof options !== 'object' || options === null) refuse('options', 'an object with a limiter', options)
  const { limiter } = options
  if (typeof limiter?.checkNow !== 'function') refuse('limiter', 'what createLimiter() returns', limiter)
  refuseUnknown(options, ['limiter', ...NAMED, ...COMMON])
  if (rulesOf(options) === null) refuseLimits(options)
  else {
    const named = NAMED.find(name => options[name] !== undefined)
    if (named !== undefined)
      refuse(named, 'a policy beside it, because the rules of the policy file say it', 'none')
  }
  refuseSubject(options, knowsPeer)
  refuseAnswers(options)
  refuseRefunds(options)
}

function refuse(field: string, expected: string, got: unknown): never {
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', field, expected, got)
}

function refuseLimits<Native>(options: AnyOptions<Native>): void {
  const { limiter, policy, tier, also, onStoreFailure } = options
  const { policyNames, tierNames } = limiter
  if ((policy === undefined) === (tier === undefined))
    refuse('policy', 'either a policy or a tier', policy === undefined ? 'neither' : 'both')
  if (policy !== undefined && !policyNames.includes(policy))
    refuse('policy', `one of ${policyNames.join(', ') || 'none'}`, policy)
  if (tier !== undefined && typeof tier !== 'function' && !tierNames.includes(tier))
    refuse('tier', `one of ${tierNames.join(', ') || 'none'}`, tier)
  if (also !== undefined && typeof also !== 'function') refuseAlso(also, limiter)
  if (onStoreFailure !== undefined) parseFailureMode(onStoreFailure)
}

function refuseAlso(also: unknown, { policyNames, tierNames }: Limiter<string, string>): void {
  if (!Array.isArray(also)) refuse('also', 'a list of { subject, policy }, or a function', also)
  for (const { subject, policy, tier } of also) {
    createSubjectNamer()(subject)
    if (policy === undefined ? !tierNames.includes(tier) : !policyNames.includes(policy))
      refuse('also', `policies or tiers among ${[...policyNames, ...tierNames].join(', ')}`, policy ?? tier)
  }
}

function refuseSubject<Native>(options: AnyOptions<Native>, knowsPeer: boolean): void {
  const { subject, identify, cost, scope, perRoute } = options
  if (identify !== undefined) {
    if (typeof identify !== 'function') refuse('identify', 'what createIdentify() returns', identify)
    const beside = ['subject', 'trustedProxies', 'forwardedHeader'].find(name => name in options)
    if (beside !== undefined) refuse(beside, 'none beside identify, which says who is asking', 'both')
  } else if ((subject === undefined || subject === null) && !knowsPeer)
    refuse('subject', 'a function of the request: the runtime does not say who is connected', subject)
  if (subject !== undefined && subject !== null && typeof subject !== 'function') {
    const list = Array.isArray(subject) && rulesOf(options) !== null ? subject : [subject]
    if (list.length === 0) refuse('subject', 'at least one', subject)
    list.forEach(createSubjectNamer())
  }
  if (cost !== undefined && typeof cost !== 'function' && !(Number.isInteger(cost) && cost >= 0))
    throw unexpected('ERR_HEADGATE_INVALID_COST', 'cost', 'a whole number from 0, or a function', cost)
  if (scope !== undefined && typeof scope !== 'function' && (typeof scope !== 'string' || scope === ''))
    refuse('scope', 'a non-empty string, or a function', scope)
  if (perRoute !== undefined && typeof perRoute !== 'boolean') refuse('perRoute', 'true or false', perRoute)
  if (perRoute && scope !== undefined) refuse('scope', 'none beside perRoute', scope)
}

function refuseRefunds<Native>({ refundIf }: CommonOptions<Native>): void {
  if (refundIf === undefined || typeof refundIf === 'function') return
  if (typeof refundIf !== 'object' || refundIf === null)
    refuse('refundIf', 'a function, or { status, atMost }', refundIf)
  refuseUnknown(refundIf, ['status', 'atMost'])
  if (typeof refundIf.status !== 'function') refuse('refundIf.status', 'a function', refundIf.status)
  if (refundIf.atMost !== undefined) parseRefundBound(refundIf.atMost, 'refundIf.atMost')
}

function refuseAnswers<Native>(options: CommonOptions<Native>): void {
  const { headers, hide, contentType, retryAfterJitterMs, lookupTimeoutMs } = options
  for (const name of FUNCTIONS) {
    if (options[name] !== undefined && typeof options[name] !== 'function')
      refuse(name, 'a function', options[name])
  }
  const { style = 'legacy', draft } = typeof headers === 'object' ? (headers ?? {}) : { style: headers }
  refuseHeaderMistakes(style, draft, hide)
  if (contentType !== undefined) {
    if (options.body === undefined) refuse('contentType', 'a body beside it', 'none')
    if (!CONTENT_TYPE.test(contentType))
      refuse('contentType', "a media type such as 'text/html'", contentType)
  }
  refuseMs('retryAfterJitterMs', retryAfterJitterMs, 0)
  refuseMs('lookupTimeoutMs', lookupTimeoutMs, 1)
}

function refuseMs(field: string, ms: number | undefined, least: number): void {
  if (ms === undefined || (Number.isInteger(ms) && ms >= least && ms <= MAX_TIMER_MS)) return
  refuse(field, `a whole number from ${least} to ${MAX_TIMER_MS}`, ms)
}
