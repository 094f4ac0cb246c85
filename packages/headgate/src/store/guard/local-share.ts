/**
 * The limits of this process while the store cannot be asked: its share of every limit, limit ÷ live
 * processes, so that the fleet together stays near the limit instead of multiplying it.
 *
 * A share below one unit becomes one unit in a longer window. A cost above the share but within the limit takes an
 * untouched share whole, and the rest is a debt that keeps the key closed until it would have been earned. A key
 * starts from what the store last said was left of it.
 */

import { type Limit, NEVER } from '../../algorithms/algorithm.js'
import type { Answer, Check, Question, Refund, Renewal, Verdict } from '../../engine/question.js'
import { onlyCheckOf, onlyVerdictOf } from '../../engine/single-question.js'
import type { Clock } from '../../time/clock.js'
import { CheckMap } from '../check-map.js'
import { memoryStore } from '../memory/memory-store.js'
import { Debts } from './debts.js'

export interface LocalShare {
  /** Decides without the store. */
  decide(question: Question): Answer
  peek(question: Question): Answer
  /** Gives back places that were taken without the store, and renews them. */
  refund(refunds: readonly Refund[]): readonly number[]
  renew(renewals: readonly Renewal[]): readonly boolean[]
  /** Remembers what the store said is left, for when it cannot be asked. */
  remember(question: Question, answer: Answer): void
}

interface Known {
  remaining: number
  atUs: number
  seeded: boolean
  /** Units charged to the share for others when the store was last lost, and when. */
  seed: { readonly units: number; readonly atUs: number } | null
}

/** The most recently used half of these always stays: a hundred thousand callers. */
const MAX_KNOWN = 200_000
const MAX_DEBTS = 100_000

export function createLocalShare(clock: Clock, liveProcesses: () => number): LocalShare {
  const local = memoryStore({ clock })
  const known = new CheckMap<Known>(MAX_KNOWN)
  const debts = new Debts(clock, MAX_DEBTS)

  function remember(question: Question, answer: Answer): void {
    const atUs = clock.nowUs()
    const [check, verdict] = [onlyCheckOf(question), onlyVerdictOf(answer)]
    if (check !== null && verdict !== null) {
      note(check, verdict.remaining, atUs)
      return
    }
    for (const [index, verdicts] of answer.verdicts.entries()) {
      const checks = question.alternatives[index] ?? []
      for (const [position, { remaining }] of verdicts.entries()) {
        note(checks[position] as Check, remaining, atUs)
      }
    }
  }

  function note(check: Check, remaining: number, atUs: number): void {
    const entry = known.get(check)
    if (entry === undefined) {
      known.set(check, { remaining, atUs, seeded: false, seed: null })
      return
    }
    entry.remaining = remaining
    entry.atUs = atUs
    entry.seeded = false
  }

  /**
   * Charges the share with what the store had already given away, once per outage. What this process gave away by
   * itself stays charged: the store never heard of it, and one that comes and goes would otherwise give out the
   * share anew each time.
   */
  function seed(check: Check, share: Limit): void {
    const entry = known.get(check)
    if (entry === undefined || entry.seeded) return
    entry.seeded = true
    const whole = { ...check, limit: share, cost: 0 }
    takeBack(whole, entry, check.limit)
    if (clock.nowUs() - entry.atUs >= share.quota.windowUs) return
    const left = Math.floor(entry.remaining / liveProcesses())
    const units = remainingOf(whole) - left
    if (units <= 0) return
    const answer = local.decide({ alternatives: [[{ ...whole, cost: units }]], shadow: [] }) as Answer
    const atUs = answer.verdicts[0]?.[0]?.chargedAtUs ?? null
    if (atUs !== null) entry.seed = { units, atUs }
  }

  /** Takes an earlier seed out of the share, as far as it still counts there. */
  function takeBack(check: Check, entry: Known, limit: Limit): void {
    if (entry.seed === null) return
    const { units, atUs } = entry.seed
    // A bucket takes back whatever it is given, so what has been refilled since must not be given twice. Computed
    // at the rate of the whole limit, because a process that was alone until now had all of it.
    const due = Math.floor(units - limit.algorithm.refilled(limit, atUs, clock.nowUs()))
    if (due > 0) void local.refund([{ check, units: due, chargedAtUs: atUs }])
    entry.seed = null
  }

  function remainingOf(check: Check): number {
    const answer = local.peek({ alternatives: [[check]], shadow: [] }) as Answer
    return answer.verdicts[0]?.[0]?.remaining ?? 0
  }

  function toShare(check: Check): Check {
    const share = check.limit.algorithm.share(check.limit, liveProcesses())
    seed(check, share)
    return { ...check, limit: share, cost: costAt(check, share) }
  }

  function costAt(check: Check, share: Limit): number {
    // Above the whole limit it stays above the share, and is denied for good.
    if (check.cost <= share.limit || check.cost > check.limit.limit) {
      return debts.leftUs(check) > 0 ? NEVER : check.cost
    }
    return debts.leftUs(check) > 0 || !debts.hasRoom() ? NEVER : share.limit
  }

  function toOwn<Held extends Refund | Renewal>(held: Held): Held {
    return {
      ...held,
      check: { ...held.check, limit: held.check.limit.algorithm.share(held.check.limit, liveProcesses()) },
    }
  }

  function ask(question: Question, how: 'decide' | 'peek'): Answer {
    const shared: Question = {
      alternatives: question.alternatives.map(checks => checks.map(toShare)),
      shadow: question.shadow.map(toShare),
    }
    const answer = local[how](shared) as Answer
    const verdicts = answer.verdicts.map((found, index) => {
      const checks = question.alternatives[index] as readonly Check[]
      return found.map((verdict, position) => withDebt(checks[position] as Check, verdict))
    })
    if (how === 'decide') runIntoDebt(question, answer)
    // Without its clock reading, because the limiter's clock may be another.
    return { charged: answer.charged, verdicts, shadow: answer.shadow, source: 'local' }
  }

  function withDebt(check: Check, verdict: Verdict): Verdict {
    if (verdict.allowed || check.cost > check.limit.limit) return verdict
    const waitUs = debts.leftUs(check)
    if (waitUs > 0) return { ...verdict, retryAfterUs: waitUs }
    // Denied for lack of room among the debts: not for good, as the engine concludes from its cost.
    return verdict.retryAfterUs === NEVER ? { ...verdict, retryAfterUs: check.limit.quota.windowUs } : verdict
  }

  function runIntoDebt(question: Question, answer: Answer): void {
    const checks = question.alternatives[answer.charged] ?? []
    for (const check of checks) {
      const share = check.limit.algorithm.share(check.limit, liveProcesses())
      if (check.cost <= share.limit || share.limit === 0) continue
      const windows = check.cost / share.limit
      debts.add(check, Math.ceil(windows * share.quota.windowUs))
    }
  }

  return {
    decide: question => ask(question, 'decide'),
    peek: question => ask(question, 'peek'),
    refund: refunds => local.refund(refunds.map(toOwn)) as readonly number[],
    renew: renewals => local.renew(renewals.map(toOwn)) as readonly boolean[],
    remember,
  }
}
