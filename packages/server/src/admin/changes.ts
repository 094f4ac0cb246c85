/** The audit trail of the fleet: the changes operators have made, which are also logged. */
import type { Change, ChangeTrail } from 'headgate/internal'
import { jsonAnswer } from '../http/problem.js'
import type { WriteLine } from '../log/write-line.js'
import { type Endpoint, reads } from './endpoint.js'

/** The trail as it is shown. */
export interface ShownChanges {
  /** Whose changes: everybody's on this Redis, or those that this server has heard of. */
  readonly scope: 'fleet' | 'process'
  /** The newest first. */
  readonly changes: readonly Change[]
}

export interface Changes {
  add(change: Omit<Change, 'atMs'>): Promise<void>
  list(): Promise<ShownChanges>
  close(): void
}

const MAX_KEPT = 500
const READ_EVERY_MS = 60_000

/**
 * Keeps changes in the fleet's store if there is one. Those that this server has heard of are kept here too: they are
 * shown while the store is away, and written back to one that has lost them, or was away when they were made.
 */
export function createChanges(log: WriteLine, fleet: ChangeTrail | null, unixMs: () => number): Changes {
  /** The newest first. */
  let known: readonly Change[] = []
  let isWritingBack = false

  async function writeBack(trail: ChangeTrail, found: readonly Change[]): Promise<void> {
    const missing = known.filter(change => !isAmong(found, change)).toReversed()
    if (missing.length === 0 || isWritingBack) return
    isWritingBack = true
    let there = found
    let written = 0
    try {
      for (const change of missing) {
        // Another server may do the same.
        if (isAmong(there, change)) continue
        there = await trail.add(change)
        written++
      }
    } finally {
      isWritingBack = false
      if (written > 0) log(`changes: ${written} that were not in the audit trail in Redis are there again`)
    }
  }

  /** Reads what all servers have recorded. Rejects if the store is away. */
  async function read(trail: ChangeTrail): Promise<void> {
    const found = await trail.read()
    known = merged(known, found)
    // In the background: whoever looks does not wait for it, and the next reading tries again.
    writeBack(trail, found).catch(() => {})
  }

  const reading =
    fleet === null ? undefined : setInterval(() => void read(fleet).catch(() => {}), READ_EVERY_MS).unref()

  return {
    close: () => clearInterval(reading),
    async add(change) {
      // One line, whatever an operator wrote: a line break in a reason would look like another change.
      log(`${change.by ?? 'this machine'} ${change.what.replaceAll(/[\n\r]+/g, ' ')}`)
      const own = { atMs: unixMs(), ...change }
      try {
        known = merged(known, (await fleet?.add(change)) ?? [own])
      } catch (error) {
        known = merged(known, [own])
        // The change is made; failing to record it must not look like a failure of the change.
        log(`changes: not written to the audit trail in Redis yet: ${(error as Error).message}`)
      }
    },
    async list() {
      try {
        if (fleet !== null) {
          await read(fleet)
          return { scope: 'fleet', changes: known }
        }
      } catch {
        // The scope says it.
      }
      return { scope: 'process', changes: known }
    },
  }
}

function isAmong(changes: readonly Change[], { atMs, by, what }: Change): boolean {
  return changes.some(one => one.atMs === atMs && one.by === by && one.what === what)
}

function merged(known: readonly Change[], found: readonly Change[]): readonly Change[] {
  const all = [...found, ...known.filter(change => !isAmong(found, change))]
  return all.toSorted((one, other) => other.atMs - one.atMs).slice(0, MAX_KEPT)
}

/** `GET /v1/changes`: the trail, for the dashboard. */
export function changesEndpoint(changes: Changes): Endpoint {
  return {
    path: '/v1/changes',
    methods: { GET: reads(async () => jsonAnswer(200, await changes.list())) },
  }
}
