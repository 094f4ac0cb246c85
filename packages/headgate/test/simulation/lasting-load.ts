/**
 * Long-running requests of a process, beside its others: some hold a permit, some settle an estimate when they end.
 */
import type { Decision } from '../../src/decision/decision.ts'
import type { Limiter } from '../../src/limiter/limiter.ts'
import type { Dice } from './dice.ts'
import type { History } from './history.ts'
import type { POLICIES } from './policies.ts'
import type { Host, VirtualTime } from './virtual-time.ts'

/** A long-running request that Redis admitted. */
export interface LastingRecord {
  readonly policy: 'permits' | 'estimated'
  readonly subject: `user:${number}`
  readonly decision: Decision
  readonly admittedAtUs: number
  /** Units that were too many; negative if they were too few. */
  tooMany: number
  overAtUs: number | null
}

interface LastingParts {
  readonly time: VirtualTime
  readonly history: History
  readonly host: Host
  readonly dice: Dice
  readonly limiter: Limiter<keyof typeof POLICIES, never>
  isLoaded(): boolean
}

const GAP_US = 60_000
const LASTS_US = 600_000
const SUBJECTS = 2

export function startLasting(parts: LastingParts): readonly LastingRecord[] {
  const { time, history, host, dice, limiter } = parts
  const records: LastingRecord[] = []

  async function hold(subject: LastingRecord['subject']): Promise<void> {
    const decision = await limiter.check(subject, { policy: 'permits' })
    if (!decision.allowed) return
    const record = begin('permits', subject, decision)
    await lasts()
    end(record, 0)
    await decision.release()
  }

  async function reserve(subject: LastingRecord['subject']): Promise<void> {
    const cost = dice.whole(1, 6)
    const { decision, settle } = await limiter.reserve(subject, { policy: 'estimated', cost })
    if (!decision.allowed || decision.source !== 'redis') return
    const record = begin('estimated', subject, decision)
    await lasts()
    const actual = dice.whole(0, 8)
    end(record, cost - actual)
    await settle(actual)
    // Settling twice by mistake settles once.
    if (dice.chance(0.2)) await settle(dice.whole(0, 8))
  }

  function begin(
    policy: LastingRecord['policy'],
    subject: LastingRecord['subject'],
    decision: Decision,
  ): LastingRecord {
    const record = { policy, subject, decision, admittedAtUs: time.nowUs(), tooMany: 0, overAtUs: null }
    if (decision.source === 'redis') records.push(record)
    return record
  }

  function end(record: LastingRecord, tooMany: number): void {
    record.tooMany = tooMany
    record.overAtUs = time.nowUs()
    history.write(host.name, () => `${record.policy} ${record.subject} is over, ${tooMany} too many`)
  }

  function lasts(): Promise<void> {
    return new Promise(resolve => time.after(dice.wait(LASTS_US), 'request', host, resolve))
  }

  function next(): void {
    time.after(dice.wait(GAP_US), 'request', host, () => {
      if (!parts.isLoaded()) return
      const subject = `user:${dice.whole(1, SUBJECTS)}` as const
      // Failures are decided by the failure mode; a closed limiter rejects, and nobody waits for it.
      void (dice.chance(0.5) ? hold(subject) : reserve(subject)).catch(() => {})
      next()
    })
  }

  next()
  return records
}
