/**
 * Time that passes only when there is nothing left to do: the next event is taken, and everything that follows from
 * it at once (promises included) happens before the one after it. So a run depends on its seed alone.
 */

/** The process an event belongs to, which may be stalled or dead. */
export interface Host {
  readonly name: string
  stalledUntilUs: number
  dead: boolean
}

/**
 * At one instant timers run before messages are read, both before the next request arrives, and work at the end of
 * the turn comes last, as in Node.
 */
const RANK = { timer: 0, message: 1, request: 2, turn: 3 } as const
export type EventKind = keyof typeof RANK

interface Event {
  atUs: number
  readonly rank: number
  readonly order: number
  readonly host: Host | null
  readonly work: () => void
}

export interface VirtualTime {
  nowUs(): number
  /** Schedules an event; returns a function that cancels it. */
  after(us: number, kind: EventKind, host: Host | null, work: () => void): () => void
  /** Lets time pass until then. */
  runUntil(us: number): Promise<void>
  /** How many events of a kind still wait for a host. */
  waiting(host: Host, kind: EventKind): number
}

export function createVirtualTime(): VirtualTime {
  const events: Event[] = []
  let nowUs = 0
  let orders = 0

  function insert(event: Event): void {
    let low = 0
    let high = events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (isBefore(events[middle] as Event, event)) low = middle + 1
      else high = middle
    }
    events.splice(low, 0, event)
  }

  function take(event: Event): boolean {
    const { host } = event
    if (host?.dead) return false
    if (host !== null && host.stalledUntilUs > nowUs) {
      event.atUs = host.stalledUntilUs
      insert(event)
      return false
    }
    event.work()
    return true
  }

  return {
    nowUs: () => nowUs,
    after(us, kind, host, work) {
      const atUs = nowUs + Math.max(0, Math.ceil(us))
      const event: Event = { atUs, rank: RANK[kind], order: orders++, host, work }
      insert(event)
      return () => {
        const index = events.indexOf(event)
        if (index !== -1) events.splice(index, 1)
      }
    },
    async runUntil(untilUs) {
      // Work started between two runs continues before time does.
      await everythingSettled()
      for (;;) {
        const next = events[0]
        if (next === undefined || next.atUs > untilUs) break
        events.shift()
        nowUs = next.atUs
        if (take(next)) await everythingSettled()
      }
      nowUs = untilUs
    },
    waiting: (host, kind) => events.filter(event => event.host === host && event.rank === RANK[kind]).length,
  }
}

function isBefore(one: Event, other: Event): boolean {
  if (one.atUs !== other.atUs) return one.atUs < other.atUs
  if (one.rank !== other.rank) return one.rank < other.rank
  return one.order < other.order
}

/** Promises that can settle have settled before the event loop turns. */
function everythingSettled(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}
