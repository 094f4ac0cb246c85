/** Limits how often a topic is logged: a problem usually affects every request, but is news only once. */

import type { Clock } from '../time/clock.js'

/** Returns how many lines of a topic were left out since its last one, or null if it is too early for another. */
export type LogThrottle = (topic: string) => number | null

/** Topics are few, except that some contain the text of an error. */
const MAX_TOPICS = 100

/** Allows each topic once in `everyMs`. */
export function throttleLog(everyMs: number, nowMs: () => number): LogThrottle {
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

/** Formats the end of a line that stands for others too. */
export function suppressedNote(leftOut: number): string {
  return leftOut === 0 ? '' : ` (and ${leftOut} more since the last time)`
}

export const WARN_EVERY_MS = 60_000

/**
 * Warns about a topic at most once a minute. The topic defaults to the message, which must then not contain text
 * from clients.
 */
export type Warn = (message: string, topic?: string) => void

/** Limits a warning function to one message a minute per topic. */
export function warnThrottled(warn: (message: string) => void, clock: Clock): Warn {
  const due = throttleLog(WARN_EVERY_MS, () => clock.nowUs() / 1000)
  return (message, topic = message) => {
    if (due(topic) === null) return
    try {
      warn(message)
    } catch {
      // A failing warning handler must not fail the request.
    }
  }
}
