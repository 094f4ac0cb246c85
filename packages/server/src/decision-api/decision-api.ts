import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type Gate, isHeadgateError } from 'headgate'
import { type Answer, jsonAnswer, problemAnswer } from '../http/problem.js'
import { sendAnswer } from '../http/send-answer.js'
import type { Log } from '../log/throttled-log.js'
import { type ConfigCounts, exposition } from '../metrics/exposition.js'
import { type Answerer, operatorEndpoints } from '../operators/operator-endpoints.js'
import { parseChecks } from './parse-checks.js'
import { readJson } from './read-json.js'
import { refuseForeign } from './refuse-foreign.js'
import { RequestError } from './request-error.js'

export interface DecisionApiOptions {
  readonly gate: Gate
  /** Whether the service is still taking requests, as `/healthz` says it. */
  isServing(): boolean
  /** Whether the policy file is in use as it is, as `/healthz` says it. */
  configState(): ConfigState
  readonly log: Log
}

/** `stale` while the file has changed into one that cannot be used, and the last good one holds. */
export type ConfigState = ConfigCounts

/** Builds the decision API: limits over HTTP, for whoever does not run Node. Not yet listening. */
export function createDecisionApi({ gate, isServing, configState, log }: DecisionApiOptions): Server {
  async function check(req: IncomingMessage): Promise<Answer> {
    const body = await readJson(req)
    const names = { policies: new Set(gate.policyNames), tiers: new Set(gate.tierNames) }
    const { checks, isList } = parseChecks(body, names)
    const decisions = await Promise.all(checks.map(({ subject, ask }) => gate.check(subject, ask)))
    return jsonAnswer(200, isList ? { decisions } : decisions[0])
  }

  const health = () =>
    isServing()
      ? jsonAnswer(200, { status: 'ok', ...configState() })
      : jsonAnswer(503, { status: 'stopping', ...configState() })
  const metrics = (): Answer => ({
    status: 200,
    headers: [['Content-Type', 'text/plain; version=0.0.4; charset=utf-8']],
    body: exposition(gate.counts(), configState()),
  })
  const endpoints = new Map(
    [
      { path: '/v1/check', methods: { POST: check } },
      { path: '/healthz', methods: { GET: health, HEAD: health } },
      { path: '/metrics', methods: { GET: metrics } },
      ...operatorEndpoints(gate),
    ].map(({ path, methods }) => [path, new Map<string, Answerer>(Object.entries(methods))]),
  )

  async function answer(req: IncomingMessage): Promise<Answer> {
    const refusal = refuseForeign(req)
    if (refusal !== null) return problemAnswer(refusal)
    const [path = ''] = (req.url ?? '').split('?')
    const methods = endpoints.get(path)
    if (methods === undefined) {
      return problemAnswer({ status: 404, detail: `expected one of ${[...endpoints.keys()].join(', ')}` })
    }
    const respond = methods.get(req.method ?? '')
    if (respond === undefined) {
      const allow = [...methods.keys()].join(', ')
      return problemAnswer({ status: 405, detail: `method: expected ${allow}`, headers: [['Allow', allow]] })
    }
    return respond(req)
  }

  return createServer({ requireHostHeader: false }, (req: IncomingMessage, res: ServerResponse) => {
    answer(req)
      .catch(error => failure(error, log))
      .then(reply => sendAnswer(req, res, reply))
  })
}

function failure(error: unknown, log: Log): Answer {
  if (error instanceof RequestError) {
    return problemAnswer({ status: error.status, detail: error.message, field: error.field })
  }
  if (isHeadgateError(error)) return problemAnswer({ status: 400, detail: error.message })
  log(`decision API failed: ${(error as Error).message}`)
  return problemAnswer({ status: 500, detail: 'The decision could not be made.' })
}
