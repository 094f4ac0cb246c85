/** Lines that are written sparingly: what is wrong is mostly wrong for every request, and news only once. */

import type { Clock } from '../time/clock.js'

/** How many lines of a topic were left out since its last one, or null while it is too early for another. */
export type Sparingly = (topic: string) => number | null

/** Topics are few; some carry the text of an error, and those could be many. */
const MAX_TOPICS = 100

/** Lets each topic speak once in `everyMs`: what is wrong is mostly wrong for every request, and news only once. */
export function sparingly(everyMs: number, nowMs: () => number): Sparingly {
  const topics = new Map<string, { quietUntilMs: number; leftOut: number }>()
  return topic => {
    const said = topics.get(topic)
    if (said !== undefined && nowMs() < said.quietUntilMs) {
      said.leftOut++
      return null
    }
    if (topics.size >= MAX_TOPICS) topics.clear()
    topics.set(topic, { quietUntilMs: nowMs() + everyMs, leftOut: 0 })
    return said?.leftOut ?? 0
  }
}

/** The end of a line that stands for others, too. */
export function andMore(leftOut: number): string {
  return leftOut === 0 ? '' : ` (and ${leftOut} more since the last time)`
}

const WARN_EVERY_MS = 60_000

/** Warns of a topic once a minute. Without one the message is its own topic: it must then not repeat what clients sent. */
export type Warn = (message: string, topic?: string) => void

export function warnSparingly(warn: (message: string) => void, clock: Clock): Warn {
  const due = sparingly(WARN_EVERY_MS, () => clock.nowUs() / 1000)
  return (message, topic = message) => {
    if (due(topic) === null) return
    try {
      warn(message)
    } catch {
      // A warning that cannot be given must not stop a request.
    }
  }
}
