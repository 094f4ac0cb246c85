/**
 * Options are validated when a middleware is created, because one that cannot limit anybody would let every request
 * pass.
 */
import { rejectHeaderMistakes } from '../decision/headers.js'
import { invalidOption, unexpected } from '../errors/headgate-error.js'
import { rejectUnknown, unknownName } from '../errors/reject-unknown.js'
import { wholeNumber } from '../errors/whole-number.js'
import type { Limiter } from '../limiter/limiter.js'
import { parseFailureMode } from '../policy/config.js'
import { parseWrittenBound } from '../policy/refund-rule.js'
import { parseWait } from '../policy/wait.js'
import { createSubjectNamer } from '../subject/subject.js'
import { type AnyLimiterOptions, type CommonOptions, rulesOf } from './options.js'

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
  'resetIf',
  'wait',
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
export function validateOptions<Native>(options: AnyLimiterOptions<Native>, knowsPeer: boolean): void {
  const { limiter } = options
  if (typeof limiter?.checkNow !== 'function')
    reject('limiter', 'what createLimiter() returns, or limit and window instead', limiter)
  rejectUnknown(options, ['limiter', ...NAMED, ...COMMON])
  if (rulesOf(options) === null) rejectLimits(options)
  else {
    const named = NAMED.find(name => options[name] !== undefined)
    if (named !== undefined)
      reject(named, 'a policy beside it, because the rules of the policy file say it', 'none')
  }
  rejectSubject(options, knowsPeer)
  rejectAnswers(options)
  rejectRefunds(options)
  if (options.wait !== undefined) parseWait(options.wait)
}

function reject(field: string, expected: string, got: unknown): never {
  throw invalidOption(field, expected, got)
}

function rejectLimits<Native>(options: AnyLimiterOptions<Native>): void {
  const { limiter, policy, tier, also, onStoreFailure } = options
  const { policyNames, tierNames } = limiter
  if (policy === undefined && tier === undefined)
    reject('policy', 'the name of a policy, or a tier instead', policy)
  if (policy !== undefined && tier !== undefined) reject('tier', 'none beside a policy', tier)
  if (policy !== undefined && typeof policy !== 'function') rejectUnknownName('policy', policy, policyNames)
  if (tier !== undefined && typeof tier !== 'function') rejectUnknownName('tier', tier, tierNames)
  if (also !== undefined && typeof also !== 'function') rejectAlso(also, limiter)
  if (onStoreFailure !== undefined) parseFailureMode(onStoreFailure)
}

function rejectUnknownName(field: string, name: string, known: readonly string[]): void {
  if (!known.includes(name)) throw unknownName(field, name, known)
}

function rejectAlso(also: unknown, { policyNames, tierNames }: Limiter<string, string>): void {
  if (!Array.isArray(also)) reject('also', 'a list of { subject, policy }, or a function', also)
  for (const { subject, policy, tier } of also) {
    createSubjectNamer()(subject)
    if (policy === undefined ? !tierNames.includes(tier) : !policyNames.includes(policy))
      reject('also', `policies or tiers among ${[...policyNames, ...tierNames].join(', ')}`, policy ?? tier)
  }
}

function rejectSubject<Native>(options: AnyLimiterOptions<Native>, knowsPeer: boolean): void {
  const { subject, identify, cost, scope, perRoute } = options
  if (identify !== undefined) {
    if (typeof identify !== 'function') reject('identify', 'what createIdentify() returns', identify)
    const beside = ['subject', 'trustedProxies', 'forwardedHeader'].find(name => name in options)
    if (beside !== undefined) reject(beside, 'none beside identify, which says who is asking', 'both')
  } else if ((subject === undefined || subject === null) && !knowsPeer)
    reject('subject', 'a function of the request: the runtime does not say who is connected', subject)
  if (subject !== undefined && subject !== null && typeof subject !== 'function') {
    const list = Array.isArray(subject) && rulesOf(options) !== null ? subject : [subject]
    if (list.length === 0) reject('subject', 'at least one', subject)
    list.forEach(createSubjectNamer())
  }
  if (cost !== undefined && typeof cost !== 'function' && !(Number.isInteger(cost) && cost >= 0))
    throw unexpected('ERR_HEADGATE_INVALID_COST', 'cost', 'a whole number from 0, or a function', cost)
  if (scope !== undefined && typeof scope !== 'function' && (typeof scope !== 'string' || scope === ''))
    reject('scope', 'a non-empty string, or a function', scope)
  if (perRoute !== undefined && typeof perRoute !== 'boolean') reject('perRoute', 'true or false', perRoute)
  if (perRoute && scope !== undefined) reject('scope', 'none beside perRoute', scope)
}

function rejectRefunds<Native>({ refundIf, resetIf }: CommonOptions<Native>): void {
  if (resetIf !== undefined && typeof resetIf !== 'function') reject('resetIf', 'a function', resetIf)
  if (refundIf === undefined || typeof refundIf === 'function') return
  if (typeof refundIf !== 'object' || refundIf === null)
    reject('refundIf', 'a function, or { status, atMost }', refundIf)
  rejectUnknown(refundIf, ['status', 'atMost'])
  if (typeof refundIf.status !== 'function') reject('refundIf.status', 'a function', refundIf.status)
  if (refundIf.atMost !== undefined) parseWrittenBound(refundIf.atMost, 'refundIf.atMost')
}

function rejectAnswers<Native>(options: CommonOptions<Native>): void {
  const { headers, hide, contentType, retryAfterJitterMs = 0, lookupTimeoutMs = 1 } = options
  for (const name of FUNCTIONS) {
    if (options[name] !== undefined && typeof options[name] !== 'function')
      reject(name, 'a function', options[name])
  }
  const { style = 'legacy', draft } = typeof headers === 'object' ? (headers ?? {}) : { style: headers }
  rejectHeaderMistakes(style, draft, hide)
  if (contentType !== undefined) {
    if (options.body === undefined) reject('contentType', 'a body beside it', 'none')
    if (!CONTENT_TYPE.test(contentType))
      reject('contentType', "a media type such as 'text/html'", contentType)
  }
  wholeNumber(retryAfterJitterMs, 'retryAfterJitterMs', 0, MAX_TIMER_MS)
  wholeNumber(lookupTimeoutMs, 'lookupTimeoutMs', 1, MAX_TIMER_MS)
}
