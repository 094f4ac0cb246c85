import type { Beat } from '../remote/fleet.js'
import { integerOf, ReplyReader } from './reply.js'

export interface HeartbeatOptions {
  readonly prefix: string
  /** The service whose limits this process shares: processes of other services are not counted. Empty: all are. */
  readonly service: string
  /** Returns the name of this process among those that share the limits, made when first needed. */
  member(): string
  /** Runs the script on a key. */
  run(key: string, args: string[]): Promise<unknown>
  /** Returns the node that holds a key, if there are several. */
  nodeOf(key: string): string
}

/** A process counts as live for three heartbeats. */
const LIVE_US = 3_000_000
/** A node that comes back later without memory of us may simply have let us expire. */
const REMEMBER_US = 60_000_000
/** Keys from which one is chosen for each node of a cluster. */
const SPREAD = 64
/**
 * Redis looks at every process to find those of a service: at most this many per second for all of them together.
 */
const LOOKED_AT = 30_000

/** More than one Redis could hear of every second. */
const MAX_PROCESSES = 100_000

/** A node's last answer, and the beat it was for. */
interface Said {
  readonly beat: number
  readonly atUs: number
}

interface Count {
  readonly live: number
  readonly recent: number
  readonly nextBeat: number
}

/**
 * Reports on every node that this process is live. A node must remember the last time it acknowledged; one that
 * knows only an earlier time has lost what was written since, including limits.
 */
export function createHeartbeat(options: HeartbeatOptions): () => Promise<Beat> {
  const { service } = options
  let member: string | undefined
  const acknowledged = new Map<string, Said>()
  const counts = new Map<string, Count>()
  let beats = 0

  /** All processes use the same key on the same node, so that it counts them all. */
  function keys(): string[] {
    const first = `${options.prefix}:fleet`
    const byNode = new Map([[options.nodeOf(first), first]])
    for (let index = 0; index < SPREAD && !byNode.has(''); index++) {
      const key = `${first}:{${index}}`
      const node = options.nodeOf(key)
      if (!byNode.has(node)) byNode.set(node, key)
    }
    return [...byNode.values()]
  }

  async function beatOn(key: string, beat: number): Promise<Beat> {
    // The beats acknowledged when this was sent: a beat that overtakes another must not be held against the node.
    const last = acknowledged.get(key)
    const known = counts.get(key)
    const isCount = known === undefined || beat >= known.nextBeat
    member ??= service === '' ? options.member() : `${service}/${options.member()}`
    const args = [member, String(LIVE_US), String(REMEMBER_US), isCount ? service : '']
    const { live, nowUs, beforeUs, recent, all } = decodeBeat(await options.run(key, args))
    if (beat > (acknowledged.get(key)?.beat ?? 0)) acknowledged.set(key, { beat, atUs: nowUs })
    const forgotten = last !== undefined && hasForgotten(last.atUs, nowUs, beforeUs)
    const everyBeats = service === '' ? 1 : Math.ceil(all ** 2 / LOOKED_AT)
    const count = isCount ? { live, recent, nextBeat: beat + everyBeats } : (known as Count)
    counts.set(key, count)
    return { live: count.live, recent: count.recent, lostWrites: forgotten ? 1 : 0 }
  }

  return async () => {
    const beat = ++beats
    const outcomes = await Promise.allSettled(keys().map(key => beatOn(key, beat)))
    const heard = outcomes.flatMap(outcome => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    if (heard.length === 0) throw (outcomes[0] as PromiseRejectedResult).reason
    return {
      live: Math.max(...heard.map(({ live }) => live)),
      recent: Math.max(...heard.map(({ recent }) => recent)),
      lostWrites: heard.reduce((sum, { lostWrites }) => sum + lostWrites, 0),
    }
  }
}

/** A count that cannot be would divide every limit by it. */
function decodeBeat(reply: unknown) {
  const reader = new ReplyReader(reply)
  const live = reader.integer(1, MAX_PROCESSES)
  const nowUs = reader.integer(0)
  const before = reader.next()
  const beforeUs = before === '' ? null : integerOf(before, 0)
  const recent = reader.integer(live, MAX_PROCESSES)
  const all = reader.integer(1, MAX_PROCESSES)
  reader.end()
  return { live, nowUs, beforeUs, recent, all }
}

function hasForgotten(acknowledgedUs: number, nowUs: number, beforeUs: number | null): boolean {
  if (beforeUs !== null) return beforeUs < acknowledgedUs
  const passedUs = nowUs - acknowledgedUs
  return passedUs > 0 && passedUs < REMEMBER_US / 2
}
