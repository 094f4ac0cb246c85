/** What operators have changed through this server: the audit trail, also written to the log. */
import { type Endpoint, reads } from '../admin/endpoint.js'
import { jsonAnswer } from '../http/problem.js'

/** A change that was made. */
export interface Change {
  readonly atMs: number
  /** The name of the token; null where no tokens are set and this machine is trusted. */
  readonly by: string | null
  /** In words: `switched all limits off`. */
  readonly what: string
}

export interface Changes {
  add(change: Change): void
  /** The newest first. */
  list(): readonly Change[]
}

const MAX_KEPT = 500

export function createChanges(log: (line: string) => void): Changes {
  let kept: readonly Change[] = []
  return {
    add(change) {
      kept = [change, ...kept].slice(0, MAX_KEPT)
      log(`${change.by ?? 'this machine'} ${change.what}`)
    },
    list: () => kept,
  }
}

/** `GET /v1/changes`: the trail, for the dashboard. */
export function changesEndpoint(changes: Changes): Endpoint {
  return {
    path: '/v1/changes',
    methods: { GET: reads(() => jsonAnswer(200, { changes: changes.list() })) },
  }
}
