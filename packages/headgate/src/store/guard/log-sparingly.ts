import type { GuardEvent, OnGuardEvent } from './guard-event.js'

/**
 * Writes failures down once in `everyMs`, with a count of those it kept quiet about: an outage is news once, not for
 * every request. A breaker is written down when it opens and when it closes, not for every probe in between.
 */
export function logSparingly(
  log: (line: string) => void,
  everyMs: number,
  nowMs: () => number,
): OnGuardEvent {
  let quietUntilMs = Number.NEGATIVE_INFINITY
  let suppressed = 0
  const down = new Set<string>()

  function isNews({ node, state }: Extract<GuardEvent, { type: 'breaker' }>): boolean {
    if (state === 'half-open' || (state === 'open' && down.has(node))) return false
    if (state === 'open') down.add(node)
    else down.delete(node)
    return true
  }

  return event => {
    if (event.type === 'breaker') {
      if (!isNews(event)) return
      log(`the breaker ${event.node === '' ? '' : `of ${event.node} `}is ${event.state}`)
      return
    }
    if (event.type === 'rewind') {
      log('Redis has forgotten what it had acknowledged, as after a failover: callers may get limits anew')
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
