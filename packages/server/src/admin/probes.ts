/** Two probes that tell an orchestrator whether the process is alive, and whether to send it requests. */
import { type HttpAnswer, jsonAnswer } from '../http/problem.js'
import { type Caller, type Endpoint, may, open } from './endpoint.js'

export interface Health {
  /** Whether the service accepts requests: not while it finishes those in flight before it stops. */
  isServing(): boolean
  /** How many processes serve, and how many should. */
  workers(): { readonly ready: number; readonly wanted: number }
  /** Whether the policy file is in use as it is. */
  configState(): ConfigCounts
}

/** Everybody gets the status; the details need the role `read`. */
export function probes({ isServing, workers, configState }: Health): readonly Endpoint[] {
  const alive = open(() => jsonAnswer(200, { status: 'ok' }))
  const ready = open((_req, caller) => readiness(caller))

  function readiness(caller: Caller | null): HttpAnswer {
    const { ready, wanted } = workers()
    const isTold = caller !== null && may(caller, 'read')
    const details = isTold ? { ...configState(), ...(wanted > 1 && { workers: { ready, wanted } }) } : {}
    if (!isServing()) return jsonAnswer(503, { status: 'stopping', ...details })
    if (ready < wanted) return jsonAnswer(503, { status: 'incomplete', ...details })
    return jsonAnswer(200, { status: 'ok', ...details })
  }

  return [
    { path: '/livez', methods: { GET: alive, HEAD: alive } },
    { path: '/readyz', methods: { GET: ready, HEAD: ready } },
    { path: '/healthz', methods: { GET: ready, HEAD: ready } },
  ]
}

/** The number of rejected policy files, and whether the last good one is in use instead of the current one. */
export interface ConfigCounts {
  readonly config: 'current' | 'stale'
  readonly rejectedConfigs: number
}
