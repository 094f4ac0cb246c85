/**
 * Denials that the store gave, remembered in this process: a flood from one client costs one call a second.
 *
 * A wait is worked out "if nobody else asks", and what others take only makes it longer. So until it is over every check
 * of the same plan that takes as much or more is denied, by any of the algorithms. Only a reset, a refund or other
 * numbers can end it sooner: other numbers are another plan; a reset or refund in this process is seen at once, one
 * elsewhere within the second after which the store is asked again. A denial for want of a permit says nothing about
 * the next moment.
 *
 * Invariant: a denial from here is one the store would have given, had it been asked.
 */
import { NEVER } from '../../algorithms/algorithm.js'
import { BoundedMap } from '../../check/bounded-map.js'
import type { Check } from '../../check/check.js'
import type { PendingCheck } from '../../check/pending-check.js'
import type { NamedLimit } from '../../check/plan.js'
import { slotSubject } from '../../subject/subject.js'
import type { Clock } from '../../time/clock.js'

/** A denial counts for this long, from when the check was made. */
const MOST_US = 1_000_000
/** Checks remembered for a subject: different plans, or different costs. */
const MAX_DENIALS = 8

/** When a check was asked: before which refunds and resets, and at what time. */
export interface AskedAt {
  readonly epoch: number
  readonly atUs: number
}

/** A denied check, and until when it stands. */
class Denial {
  readonly untilUs: number

  constructor(
    readonly check: PendingCheck,
    readonly sentAtUs: number,
  ) {
    this.untilUs = sentAtUs + Math.min(MOST_US, waitUs(check))
  }
}

export class DenyCache {
  private readonly denials: BoundedMap<Denial[]>
  /** When a denial of a subject may last have ended early: what was asked before that is not remembered. */
  private readonly unsettled = new Map<string, number>()
  private lastEpoch = 0
  /** Like `unsettled`, for all subjects, because that map is bounded. */
  private forgottenBefore = 0

  constructor(
    private readonly clock: Clock,
    /** How many subjects' denials are remembered; beyond that, those that did not ask lately are forgotten. */
    private readonly maxSubjects: number,
  ) {
    this.denials = new BoundedMap(maxSubjects)
  }

  /** To be kept with a check that is about to be asked, for `learn`. */
  mark(): AskedAt {
    return { epoch: this.lastEpoch, atUs: this.clock.nowUs() }
  }

  /** Writes a known denial into a check. Returns whether there was one. */
  answer(check: PendingCheck): boolean {
    if (this.denials.size === 0 || check.isPeek) return false
    const subject = deniedSubjectOf(check)
    const known = subject === null ? undefined : this.denials.get(subject)
    return known !== undefined && this.answerFrom(known, check)
  }

  /**
   * The denial of the same check. One of a lower cost would also apply, but not its duration: the store is asked for
   * that, unless a client keeps asking for ever different amounts. Then it is told the shorter wait.
   */
  private answerFrom(known: readonly Denial[], check: PendingCheck): boolean {
    const nowUs = this.clock.nowUs()
    const isLive = ({ untilUs }: Denial): boolean => untilUs > nowUs
    let found = known.find(one => isLive(one) && isSame(one.check, check) && one.check.cost === check.cost)
    if (found === undefined && known.length === MAX_DENIALS) {
      found = known.find(one => isLive(one) && isSame(one.check, check) && one.check.cost <= check.cost)
    }
    if (found === undefined) return false
    check.copyFrom(found.check, nowUs - found.sentAtUs)
    check.isCached = true
    return true
  }

  /** Remembers a denial that the store gave to a check that was asked then. */
  learn(denied: PendingCheck, { epoch, atUs }: AskedAt): void {
    const subject = deniedSubjectOf(denied)
    if (subject === null || (this.unsettled.get(subject) ?? this.forgottenBefore) > epoch) return
    const denial = new Denial(denied, atUs)
    const nowUs = this.clock.nowUs()
    if (denial.untilUs <= nowUs) return
    const others = (this.denials.get(subject) ?? []).filter(
      ({ untilUs, check }) => untilUs > nowUs && !(isSame(check, denied) && check.cost === denied.cost),
    )
    if (others.length === MAX_DENIALS) others.shift()
    this.denials.set(subject, [...others, denial])
  }

  /**
   * Forgets the denials of subjects to whom something is given back: called before, because it may be executed at any
   * time from then on, and after, because of what was learnt in the meantime.
   */
  forget(checks: readonly Check[]): void {
    const subjects = new Set<string>()
    for (const { limit, subject } of checks) {
      // A permit comes free when whoever holds it is done: that ends no remembered denial.
      if (limit.algorithm.renew === undefined) subjects.add(slotSubject(subject))
    }
    if (subjects.size === 0) return
    this.lastEpoch++
    if (this.unsettled.size + subjects.size > this.maxSubjects) {
      this.unsettled.clear()
      this.forgottenBefore = this.lastEpoch
    }
    for (const subject of subjects) {
      this.denials.delete(subject)
      this.unsettled.set(subject, this.lastEpoch)
    }
  }
}

/** The subject whose denial a check would be; null where it would say nothing about a later one. */
function deniedSubjectOf(check: PendingCheck): string | null {
  const { plan, more } = check
  if (plan.hasShadow || plan.limits.length === 0) return null
  // By the slot: what one IPv6 caller gives back may end the denial of another in its network.
  const slot = slotSubject(check.subject)
  if (more === null) return slot
  for (const { subject } of more.others) if (slotSubject(subject) !== slot) return null
  return slot
}

/** Whether two checks ask the same of the same subjects, whatever they cost. */
function isSame(one: PendingCheck, other: PendingCheck): boolean {
  if (one.plan !== other.plan || one.subject !== other.subject) return false
  if (one.more === null && other.more === null) return true
  if (one.scopeOf(0) !== other.scopeOf(0) || one.others.length !== other.others.length) return false
  for (const [index, { subject, scope }] of one.others.entries()) {
    const theirs = other.others[index]
    if (theirs?.subject !== subject || theirs.scope !== scope) return false
  }
  // Units of their own make costs that cannot be compared.
  return (one.more?.units ?? null) === null && (other.more?.units ?? null) === null
}

/** Until every limit of one alternative has room, of whichever alternative that is first. */
function waitUs(check: PendingCheck): number {
  const { plan } = check
  let least = NEVER
  for (let alternative = 0; alternative < plan.ends.length; alternative++) {
    let longest = 0
    const end = plan.ends[alternative] as number
    for (let index = plan.start(alternative); index < end; index++) {
      const { algorithm } = (plan.limits[index] as NamedLimit).limit
      if (algorithm.renew === undefined) longest = Math.max(longest, check.wait(index))
    }
    least = Math.min(least, longest)
  }
  return least
}
