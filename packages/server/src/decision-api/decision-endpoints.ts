/** The decision API: limits over HTTP, for programs in any language. */
import type { IncomingMessage } from 'node:http'
import { type Decision, decisionHeaders, decisionProblem, isHeadgateError, type RuleLimiter } from 'headgate'
import { shownName } from 'headgate/internal'
import { objectOf, rejectUnknown, subjectOf as subjectIn, textOf, unitsOf } from '../admin/body-fields.js'
import { administers, type Caller, checks, type Endpoint, RequestError, reads } from '../admin/endpoint.js'
import { isCallersMistake } from '../admin/failure-answer.js'
import { readJson } from '../admin/read-body.js'
import { type HttpAnswer, jsonAnswer } from '../http/problem.js'
import { throttledLog, type WriteLine } from '../log/write-line.js'
import { type AskedCheck, type Names, parseChecks, parseNamed } from './parse-checks.js'
import { createReferences } from './references.js'

const FAULT_LINE_EVERY_MS = 60_000

export function decisionEndpoints(
  limiter: RuleLimiter,
  log: WriteLine,
  /** Returns the stored name of the subject behind a reference; null if it is not known. */
  storedOf: (reference: string) => string | null,
): readonly Endpoint[] {
  const logFault = throttledLog(log, FAULT_LINE_EVERY_MS)
  const references = createReferences()
  const names = (): Names => ({ policies: new Set(limiter.policyNames), tiers: new Set(limiter.tierNames) })

  /** Only an operator asks by reference: others would learn whether a name is known here. */
  function subjectOf(reference: string): string {
    const stored = storedOf(reference)
    if (stored === null) {
      const expected = 'type:id, or the reference of a subject that has been denied lately'
      throw new RequestError(404, { field: 'subject', expected, got: reference })
    }
    if (limiter.nameOf(stored) === stored) return stored
    const expected =
      'the subject itself: of a key or a session only a keyed hash is kept, which nobody can ask by'
    throw new RequestError(409, { field: 'subject', expected, got: reference })
  }

  /** A valid question gets a decision, whatever happens to the limiter. */
  async function decide(action: 'check' | 'peek', asked: AskedCheck): Promise<Decision> {
    try {
      return await ask(limiter, action, asked)
    } catch (error) {
      if (isHeadgateError(error) && isCallersMistake(error)) throw error
      const reason = (error as Error).message
      logFault('limiter', () => `decision API: the limiter failed, and the failure mode decides: ${reason}`)
      return limiter.fallback(asked.facts ?? {})
    }
  }

  async function answerAll(
    action: 'check' | 'peek',
    req: IncomingMessage,
    { role }: Caller,
  ): Promise<HttpAnswer> {
    const known = role === 'administer' ? { ...names(), subjectOf } : names()
    const { checks, isList } = parseChecks(await readJson(req), known)
    const decisions = await Promise.all(
      checks.map(async asked => {
        const decision = await decide(action, asked)
        // A caller over HTTP may vanish without notice, so nobody here renews its permit.
        decision.abandon()
        const isWanted = action === 'check' && asked.refundable && canBeRefunded(decision)
        return decisionAnswer(decision, isWanted || decision.isHeld ? references.remember(decision) : null)
      }),
    )
    return jsonAnswer(200, isList ? { decisions } : decisions[0])
  }

  async function refund(req: IncomingMessage): Promise<HttpAnswer> {
    const body = objectOf(await readJson(req), 'body')
    rejectUnknown(body, ['reference', 'units'])
    const decision = decisionOf(body)
    const units = unitsOf(body.units, 'units', 1)
    return jsonAnswer(200, { refunded: await limiter.refund(decision(), units) })
  }

  async function release(req: IncomingMessage): Promise<HttpAnswer> {
    const body = objectOf(await readJson(req), 'body')
    rejectUnknown(body, ['reference'])
    await decisionOf(body)().release()
    return jsonAnswer(200, { released: true })
  }

  /**
   * Reads the reference first and finds the decision later: a mistake elsewhere in the body is reported before a
   * forgotten reference.
   */
  function decisionOf(body: Readonly<Record<string, unknown>>): () => Decision {
    const reference = textOf(body.reference ?? '', 'reference') as string
    return () => {
      const decision = references.find(reference)
      if (decision !== null) return decision
      throw new RequestError(404, {
        field: 'reference',
        expected: 'one that a check of this process returned lately',
      })
    }
  }

  async function reset(req: IncomingMessage): Promise<HttpAnswer> {
    const body = objectOf(await readJson(req), 'body')
    rejectUnknown(body, ['subject', 'policy', 'tier', 'scope'])
    const isWhole = body.policy === undefined && body.tier === undefined && body.scope === undefined
    const { subject, ask } = isWhole
      ? { subject: subjectIn(body.subject, 'subject'), ask: undefined }
      : parseNamed(body, '', names())
    await limiter.reset(subject, ask)
    const of = ask === undefined ? 'everything' : (ask.policy ?? `tier ${ask.tier}`)
    const change = `reset ${of} of ${shownName(limiter.nameOf(subject))}`
    return { ...jsonAnswer(200, { reset: true }), change }
  }

  async function inspect(req: IncomingMessage): Promise<HttpAnswer> {
    const body = objectOf(await readJson(req), 'body')
    rejectUnknown(body, ['subject', 'tier', 'scope'])
    const tier = textOf(body.tier, 'tier')
    const scope = textOf(body.scope, 'scope')
    const subject = subjectIn(body.subject, 'subject')
    const options = { ...(tier !== undefined && { tier }), ...(scope !== undefined && { scope }) }
    return jsonAnswer(200, await limiter.inspect(subject, options))
  }

  return [
    { path: '/v1/check', methods: { POST: checks((req, caller) => answerAll('check', req, caller)) } },
    { path: '/v1/peek', methods: { POST: checks((req, caller) => answerAll('peek', req, caller)) } },
    { path: '/v1/refund', methods: { POST: checks(refund) } },
    { path: '/v1/release', methods: { POST: checks(release) } },
    { path: '/v1/reset', methods: { POST: administers(reset) } },
    { path: '/v1/inspect', methods: { POST: reads(inspect) } },
  ]
}

function ask(limiter: RuleLimiter, action: 'check' | 'peek', asked: AskedCheck): Promise<Decision> {
  if (asked.facts === null) return limiter[action](asked.subject, asked.ask)
  return action === 'check' ? limiter.request(asked.facts) : limiter.peekRequest(asked.facts)
}

/** Only units that the store itself charged can be refunded. */
function canBeRefunded({ allowed, cost, binding, source }: Decision): boolean {
  return allowed && cost > 0 && binding !== null && (source === 'redis' || source === 'memory')
}

/** A decision as the API returns it: its own fields, and the response that a service would give its client. */
type DecisionAnswer = ReturnType<Decision['toJSON']> & {
  /** 200, 429, or 503 if limits could not be checked and such requests are rejected. */
  readonly status: 200 | 429 | 503
  /** By name, ready to be copied to the response. */
  readonly headers: Readonly<Record<string, string>>
  /** The reference for `/v1/refund`, if requested, and for `/v1/release`, if a permit was taken. */
  readonly reference?: string
}

function decisionAnswer(decision: Decision, reference: string | null): DecisionAnswer {
  return {
    ...decision.toJSON(),
    status: decision.allowed ? 200 : decisionProblem(decision).status,
    headers: Object.fromEntries(decisionHeaders(decision)),
    ...(reference !== null && { reference }),
  }
}
