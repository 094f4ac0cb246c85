/**
 * Logs for operators about an unresponsive store: what happened, and what that means for requests. Each kind of
 * line at most once in `everyMs`, because an outage is news only once, and so is a flapping breaker.
 */

import type { FailureMode } from '../../check/check.js'
import type { Logger } from '../../observe/logger.js'
import { suppressedNote, throttleLog } from '../../observe/throttled-log.js'
import type { Evidence } from './breaker.js'
import type { OnStoreEvent, StoreEvent } from './store-event.js'

export interface OutageLogOptions {
  readonly logger: Logger
  readonly everyMs: number
  readonly nowMs: () => number
  /** Returns the name operators know a node by. */
  nameOf(node: string): string
  readonly mode: FailureMode | 'throw'
  /** Returns among how many processes the limits are divided. */
  sharedAmong(): number
  /** Returns whether there are quotas among them, of which only what is left is divided. */
  hasQuotas(): boolean
}

interface Outage {
  readonly sinceMs: number
  readonly decidedBefore: number
}

export function logOutages(options: OutageLogOptions): OnStoreEvent {
  const { logger, nowMs, nameOf } = options
  const due = throttleLog(options.everyMs, nowMs)
  const outages = new Map<string, Outage>()
  let decidedWithout = 0
  let lastMessage = ''

  function consequence(): string {
    const { mode } = options
    if (mode === 'throw') return 'passing errors to the caller'
    if (mode === 'open') return 'letting requests pass'
    if (mode === 'closed') return 'rejecting requests with 503'
    const among = options.sharedAmong()
    const [limits, left] =
      among === 1 ? ['the full limit', ''] : [`1/${among} of each limit`, `1/${among} of `]
    const quotas = options.hasQuotas() ? `, of a quota at ${left}what is known to be left` : ''
    return `failing over to this process, at ${limits}${quotas},`
  }

  function sayOpen(node: string, because: Evidence | null): void {
    // A failed probe is not news.
    if (outages.has(node)) return
    outages.set(node, { sinceMs: nowMs(), decidedBefore: decidedWithout })
    const leftOut = due(`open ${node}`)
    if (leftOut === null) return
    const { calls = 0, withinMs = 0, failure = 'silent' } = because ?? {}
    const failed =
      failure === 'silent'
        ? `has not answered ${calls} calls in ${spanOf(withinMs)}`
        : `has failed ${calls} calls in ${spanOf(withinMs)}${lastMessage && ` (${lastMessage})`}`
    logger.warn(
      { event: 'breaker', state: 'open', node, failure, calls, withinMs },
      `${nameOf(node)} ${failed}: ${consequence()} until it answers${suppressedNote(leftOut)}`,
    )
  }

  function sayClosed(node: string): void {
    const outage = outages.get(node)
    outages.delete(node)
    const leftOut = due(`closed ${node}`)
    if (outage === undefined || leftOut === null) return
    const outageMs = Math.round(nowMs() - outage.sinceMs)
    const decisions = decidedWithout - outage.decidedBefore
    logger.info(
      { event: 'breaker', state: 'closed', node, outageMs, decisions },
      `${nameOf(node)} is back: not called for ${spanOf(outageMs)}, ${decisions === 1 ? '1 decision' : `${decisions} decisions`} made without it${suppressedNote(leftOut)}`,
    )
  }

  function sayFailure({ code, message }: Extract<StoreEvent, { type: 'failure' }>): void {
    lastMessage = message
    const leftOut = due('failure')
    if (leftOut === null) return
    logger.warn(
      { event: 'failure', code },
      `${code}: ${message}: ${consequence()} for now${suppressedNote(leftOut)}`,
    )
  }

  function logLostWrites(): void {
    const leftOut = due('lost-writes')
    if (leftOut === null) return
    logger.warn(
      { event: 'lost-writes' },
      `${nameOf('')} has lost acknowledged writes, as after a failover: some callers may get their limits again${suppressedNote(leftOut)}`,
    )
  }

  return event => {
    if (event.type === 'fallback') decidedWithout++
    else if (event.type === 'failure') sayFailure(event)
    else if (event.type === 'lost-writes') logLostWrites()
    else if (event.type === 'lease' || event.type === 'late-charge') return
    else if (event.state === 'open') sayOpen(event.node, event.because)
    else if (event.state === 'closed') sayClosed(event.node)
  }
}

function spanOf(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}
