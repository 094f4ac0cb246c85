/** The audit trail of the fleet: the changes operators have made, which are also logged. */
import type { Change, ChangeTrail } from 'headgate/internal'
import { jsonAnswer } from '../http/problem.js'
import type { WriteLine } from '../log/write-line.js'
import { type Endpoint, reads } from './endpoint.js'

/** The trail as it is shown. */
export interface ShownChanges {
  /** Whose changes: everybody's on this Redis, or those made through this server since it started. */
  readonly scope: 'fleet' | 'process'
  /** The newest first. */
  readonly changes: readonly Change[]
}

export interface Changes {
  add(change: Omit<Change, 'atMs'>): Promise<void>
  list(): Promise<ShownChanges>
}

const MAX_KEPT = 500

/**
 * Keeps changes in the fleet's store if there is one. Those of this server are kept here too, to be shown while the
 * store is away.
 */
export function createChanges(log: WriteLine, fleet: ChangeTrail | null, unixMs: () => number): Changes {
  let own: readonly Change[] = []
  return {
    async add(change) {
      own = [{ atMs: unixMs(), ...change }, ...own].slice(0, MAX_KEPT)
      // One line, whatever an operator wrote: a line break in a reason would look like another change.
      log(`${change.by ?? 'this machine'} ${change.what.replaceAll(/[\n\r]+/g, ' ')}`)
      try {
        await fleet?.add(change)
      } catch (error) {
        // The change is made; failing to record it must not look like a failure of the change.
        log(`changes: not written to the audit trail in Redis: ${(error as Error).message}`)
      }
    },
    async list() {
      try {
        if (fleet !== null) return { scope: 'fleet', changes: await fleet.read() }
      } catch {
        // The scope says it.
      }
      return { scope: 'process', changes: own }
    },
  }
}

/** `GET /v1/changes`: the trail, for the dashboard. */
export function changesEndpoint(changes: Changes): Endpoint {
  return {
    path: '/v1/changes',
    methods: { GET: reads(async () => jsonAnswer(200, await changes.list())) },
  }
}
