/** What an orchestrator asks a process: whether it is alive, and whether to send it requests. */
import { type HttpAnswer, jsonAnswer } from '../http/problem.js'
import type { ConfigCounts } from '../metrics/config-counts.js'
import { type Caller, type Endpoint, may, open } from './endpoint.js'

export interface Health {
  /** Whether the service takes requests: not while it finishes what is under way, to stop. */
  isServing(): boolean
  /** Whether the policy file is in use as it is. */
  configState(): ConfigCounts
}

/** Everybody gets the status; what else there is to say needs the role `read`. */
export function probes({ isServing, configState }: Health): readonly Endpoint[] {
  const alive = open(() => jsonAnswer(200, { status: 'ok' }))
  const ready = open((_req, caller) => readiness(caller))

  function readiness(caller: Caller | null): HttpAnswer {
    const details = caller !== null && may(caller, 'read') ? configState() : {}
    return isServing()
      ? jsonAnswer(200, { status: 'ok', ...details })
      : jsonAnswer(503, { status: 'stopping', ...details })
  }

  return [
    { path: '/livez', methods: { GET: alive, HEAD: alive } },
    { path: '/readyz', methods: { GET: ready, HEAD: ready } },
    { path: '/healthz', methods: { GET: ready, HEAD: ready } },
  ]
}
