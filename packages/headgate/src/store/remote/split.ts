/**
 * A cluster keeps subjects on different nodes, and no script spans two. So a check about several subjects is asked of
 * each, and what one granted is given back when another denies. That never admits more than the limits allow; for
 * the moment between charge and refund a concurrent request may find less than there is.
 */
import { NOT_CHARGED } from '../../algorithms/algorithm.js'
import type { Check, Refund } from '../../check/check.js'
import type { PendingCheck } from '../../check/pending-check.js'
import { NOBODY_LISTENS } from '../../check/plan.js'
import { Plans } from '../../check/plans.js'
import { slotSubject } from '../../subject/subject.js'
import type { MaybePromise } from '../store.js'
import { wasNotSent } from './nodes.js'

/** What one slot said of one limit. */
interface Verdict {
  readonly waitUs: number
  readonly remaining: number
  readonly resetAfterUs: number
  readonly chargedAtUs: number
}

const UNKNOWN: Verdict = { waitUs: 0, remaining: 0, resetAfterUs: 0, chargedAtUs: NOT_CHARGED }

export interface SplitOptions {
  /** Asks a check about one slot. */
  ask(check: PendingCheck): void
  refund(refunds: readonly Refund[]): MaybePromise<readonly number[]>
}

/** Whether all limits of a check are about one subject, or about subjects kept in the same slot. */
export function isInOneSlot(check: PendingCheck): boolean {
  const { others } = check
  if (others.length === 0) return true
  const slot = slotSubject(check.subject)
  return others.every(({ subject }) => slotSubject(subject) === slot)
}

export class Splitter {
  private readonly plans = new Plans(NOBODY_LISTENS)
  private readonly unfinished = new Set<Promise<unknown>>()

  constructor(private readonly options: SplitOptions) {}

  /** Writes the numbers of a check that is asked of several slots. Rejects if one of them fails. */
  decide(check: PendingCheck): Promise<void> {
    const work = this.decideAcross(check)
    // Closing waits for it, because a grant may have to be given back.
    const done: Promise<unknown> = work.then(
      () => this.unfinished.delete(done),
      () => this.unfinished.delete(done),
    )
    this.unfinished.add(done)
    return work
  }

  async close(): Promise<void> {
    await Promise.all(this.unfinished)
  }

  private async decideAcross(check: PendingCheck): Promise<void> {
    const { asked: plan } = check
    let charged = -1
    const found: (Verdict | undefined)[] = []
    for (let alternative = 0; alternative < plan.ends.length && charged < 0; alternative++) {
      const indices = between(plan.start(alternative), plan.ends[alternative] as number)
      const { fits, verdicts } = check.isPeek
        ? await this.look(check, indices)
        : await this.chargeAllOrNone(check, indices)
      for (const [position, index] of indices.entries()) found[index] = verdicts[position]
      if (fits) charged = alternative
    }
    const shadow = between(plan.shadowFrom, plan.limits.length)
    const watched = await this.inSlots(check, shadow, group =>
      // A shadow limit that failed would not have denied anybody, and must not fail the request either.
      this.askSlot(check, group, check.isPeek, true).catch(() => group.map(() => UNKNOWN)),
    )
    for (const [position, index] of shadow.entries()) found[index] = watched[position]
    if (check.isSettled) return
    for (let index = 0; index < plan.limits.length; index++) {
      const { waitUs, remaining, resetAfterUs, chargedAtUs } = found[index] ?? UNKNOWN
      check.set(index, waitUs, remaining, resetAfterUs, chargedAtUs)
    }
    check.charged = charged
  }

  private async look(check: PendingCheck, indices: readonly number[]) {
    const verdicts = await this.inSlots(check, indices, group => this.askSlot(check, group, true))
    return { fits: verdicts.every(({ waitUs }) => waitUs === 0), verdicts }
  }

  private async chargeAllOrNone(check: PendingCheck, indices: readonly number[]) {
    const failures: unknown[] = []
    const found = await this.inSlots<Verdict | null>(check, indices, async group => {
      try {
        return await this.askSlot(check, group, false)
      } catch (error) {
        failures.push(error)
        return group.map(() => null)
      }
    })
    const fits = found.every(verdict => verdict?.waitUs === 0)
    if (fits) return { fits, verdicts: found as Verdict[] }
    const isDenied = failures.length === 0
    // Units that cannot be given back stay charged, which admits less, never more.
    await this.giveBack(check, indices, found).catch(error => failures.push(error))
    // A slot that may have charged it comes first: such a request is not charged late, as one that was not sent is.
    if (!isDenied) throw failures.find(error => !wasNotSent(error)) ?? failures[0]
    return { fits, verdicts: await this.lookAgain(check, indices, found as Verdict[]) }
  }

  /** Only what is known to have been charged: an unknown outcome is never refunded. */
  private async giveBack(
    check: PendingCheck,
    indices: readonly number[],
    found: readonly (Verdict | null)[],
  ): Promise<void> {
    const refunds = indices.flatMap((index, position): Refund[] => {
      const chargedAtUs = found[position]?.chargedAtUs ?? NOT_CHARGED
      const state = this.stateOf(check, index)
      return chargedAtUs === NOT_CHARGED ? [] : [{ check: state, units: state.cost, chargedAtUs }]
    })
    if (refunds.length > 0) await this.options.refund(refunds)
  }

  /** After a charge was given back, because the answer is about the limits without it. */
  private lookAgain(
    check: PendingCheck,
    indices: readonly number[],
    found: readonly Verdict[],
  ): Promise<Verdict[]> {
    const verdictOf = (index: number): Verdict => found[indices.indexOf(index)] as Verdict
    return this.inSlots(check, indices, async group => {
      if (group.every(index => verdictOf(index).chargedAtUs === NOT_CHARGED)) return group.map(verdictOf)
      const looked = await this.askSlot(check, group, true).catch(() => null)
      return group.map((index, position) => {
        const verdict = verdictOf(index)
        // It had room when it was asked: if somebody else has taken that since, it is still not what denied the request.
        return {
          waitUs: 0,
          remaining: looked?.[position]?.remaining ?? verdict.remaining + check.unitsOf(index),
          resetAfterUs: looked?.[position]?.resetAfterUs ?? verdict.resetAfterUs,
          chargedAtUs: NOT_CHARGED,
        }
      })
    })
  }

  /** Asks one slot for some limits of the check. */
  private askSlot(
    check: PendingCheck,
    indices: readonly number[],
    isPeek: boolean,
    isShadow = false,
  ): Promise<Verdict[]> {
    const states = indices.map(index => this.stateOf(check, index))
    const list = isShadow ? { alternatives: [[]], shadow: states } : { alternatives: [states], shadow: [] }
    const part = this.plans.pending(list, { isPeek })
    part.isInternal = true
    part.atUs = check.atUs
    return new Promise((resolve, reject) => {
      part.onSettled({
        settled: () =>
          resolve(
            indices.map((_, position) => ({
              waitUs: part.wait(position),
              remaining: part.left(position),
              resetAfterUs: part.resetAfter(position),
              chargedAtUs: part.chargedAt(position),
            })),
          ),
        failed: reject,
      })
      this.options.ask(part)
    })
  }

  private stateOf(check: PendingCheck, index: number): Check {
    const state = check.checkOf(index)
    return { ...state, limit: check.asked.limits[index]?.limit ?? state.limit }
  }

  /** Asks for each slot's limits at once, in parallel, and restores the order of the results. */
  private inSlots<Result>(
    check: PendingCheck,
    indices: readonly number[],
    ask: (group: readonly number[]) => Promise<readonly Result[]>,
  ): Promise<Result[]> {
    return inGroups(indices, index => slotSubject(check.subjectOf(index)), ask)
  }
}

/** Asks for each group of items at once, in parallel, and restores the order of the results. */
export async function inGroups<Item, Result>(
  items: readonly Item[],
  groupOf: (item: Item) => string,
  ask: (group: readonly Item[]) => MaybePromise<readonly Result[]>,
): Promise<Result[]> {
  const groups = new Map<string, number[]>()
  for (const [index, item] of items.entries()) {
    const group = groups.get(groupOf(item))
    if (group === undefined) groups.set(groupOf(item), [index])
    else group.push(index)
  }
  const results: Result[] = new Array(items.length)
  await Promise.all(
    [...groups.values()].map(async indices => {
      const answers = await ask(indices.map(index => items[index] as Item))
      for (const [position, index] of indices.entries()) results[index] = answers[position] as Result
    }),
  )
  return results
}

function between(from: number, end: number): number[] {
  return Array.from({ length: Math.max(0, end - from) }, (_, offset) => from + offset)
}
