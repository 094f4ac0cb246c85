import type { OnGuardEvent } from './guard-event.js'

/**
 * Writes failures down once in `everyMs`, with a count of those it kept quiet about: an outage is news once, not for
 * every request. Changes of a breaker are always written.
 */
export function logSparingly(
  log: (line: string) => void,
  everyMs: number,
  nowMs: () => number,
): OnGuardEvent {
  let quietUntilMs = Number.NEGATIVE_INFINITY
  let suppressed = 0
  return event => {
    if (event.type === 'breaker') {
      log(`the breaker ${event.node === '' ? '' : `of ${event.node} `}is ${event.state}`)
      return
    }
    if (event.type !== 'failure') return
    if (nowMs() < quietUntilMs) {
      suppressed++
      return
    }
    const others = suppressed === 0 ? '' : ` (and ${suppressed} more since the last warning)`
    suppressed = 0
    quietUntilMs = nowMs() + everyMs
    log(`${event.code}: ${event.message}${others}`)
  }
}
