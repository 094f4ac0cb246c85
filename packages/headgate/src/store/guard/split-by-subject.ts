/**
 * A cluster keeps subjects on different nodes, and no script spans two. So a question about several subjects is asked
 * of each, and what one granted is given back when another denies. That never admits more than the limits allow; for
 * the moment between charge and refund a concurrent request may find less than there is.
 */
import type { Answer, Check, Question, Refund, Verdict } from '../../engine/question.js'
import { firstCheckOf, someCheck } from '../../engine/single-question.js'
import { slotSubject } from '../../subject/ip-network.js'
import { type Action, promiseAnswer, type Stage } from '../stage.js'
import { settleWith, type Waiter } from '../waiter.js'
import type { Deadlines } from './deadlines.js'

const NO_CHECKS: readonly Check[] = []
const UNKNOWN: Verdict = { allowed: true, remaining: 0, retryAfterUs: 0, resetAfterUs: 0, chargedAtUs: null }

/**
 * Turns a stage that answers questions about one subject into one that answers about any number. Such a question
 * takes several calls, each with a deadline of its own so that grants can be given back, and one deadline in all.
 */
export function splitBySubject(next: Stage, deadlines: Deadlines): Stage {
  const underWay = new Set<Promise<unknown>>()

  async function decideAcross(question: Question): Promise<Answer> {
    const verdicts: (readonly Verdict[])[] = []
    let charged = -1
    for (const checks of question.alternatives) {
      const { fits, found } = await chargeAllOrNone(next, checks)
      verdicts.push(found)
      if (!fits) continue
      charged = verdicts.length - 1
      break
    }
    const shadow = await lookAside(question.shadow, async group => {
      return (await promiseAnswer(next, 'decide', { alternatives: [NO_CHECKS], shadow: group })).shadow
    })
    return { charged, verdicts, shadow }
  }

  async function peekAcross(question: Question): Promise<Answer> {
    const verdicts: Verdict[][] = []
    let charged = -1
    for (const checks of question.alternatives) {
      const found = await inGroups(checks, checkOf, group => peekGroup(next, group))
      verdicts.push(found)
      if (found.some(verdict => !verdict.allowed)) continue
      charged = verdicts.length - 1
      break
    }
    const shadow = await lookAside(question.shadow, group => peekGroup(next, group))
    return { charged, verdicts, shadow }
  }

  function askAcross(action: Action, question: Question, waiter: Waiter<Answer>): Answer | null {
    if (isInOneSlot(question)) return next.ask(action, question, waiter)
    const answer = action === 'decide' ? decideAcross(question) : peekAcross(question)
    settleWith(deadlines.begin(waiter), finishing(answer))
    return null
  }

  /** Closing waits for it, because a grant may have to be given back. */
  function finishing<T>(work: Promise<T>): Promise<T> {
    const done: Promise<unknown> = work.then(
      () => underWay.delete(done),
      () => underWay.delete(done),
    )
    underWay.add(done)
    return work
  }

  return {
    source: next.source,
    ask: askAcross,
    refund: refunds =>
      inGroups(
        refunds,
        refund => refund.check,
        group => next.refund(group),
      ),
    renew: renewals =>
      inGroups(
        renewals,
        renewal => renewal.check,
        group => next.renew(group),
      ),
    async reset(checks) {
      await inGroups(checks, checkOf, async group => {
        await next.reset(group)
        return group
      })
    },
    async close() {
      await Promise.all(underWay)
      await next.close()
    },
  }
}

/** Whether all its checks are about one subject, or about subjects kept in the same slot. */
function isInOneSlot(question: Question): boolean {
  const subject = firstCheckOf(question)?.subject ?? ''
  const slot = slotSubject(subject)
  return !someCheck(question, check => check.subject !== subject && slotSubject(check.subject) !== slot)
}

function checkOf(check: Check): Check {
  return check
}

/** A shadow check that failed would not have denied anybody, and must not fail the request either. */
function lookAside(
  checks: readonly Check[],
  ask: (group: readonly Check[]) => Promise<readonly Verdict[]>,
): Promise<Verdict[]> {
  return inGroups(checks, checkOf, group => ask(group).catch(() => group.map(() => UNKNOWN)))
}

async function peekGroup(next: Stage, checks: readonly Check[]): Promise<readonly Verdict[]> {
  return (await promiseAnswer(next, 'peek', { alternatives: [checks], shadow: NO_CHECKS })).verdicts[0] ?? []
}

async function chargeAllOrNone(
  next: Stage,
  checks: readonly Check[],
): Promise<{ fits: boolean; found: readonly Verdict[] }> {
  let fits = true
  let failure: unknown
  const found = await inGroups(checks, checkOf, async group => {
    try {
      const answer = await promiseAnswer(next, 'decide', { alternatives: [group], shadow: NO_CHECKS })
      fits &&= answer.charged === 0
      return answer.verdicts[0] ?? []
    } catch (error) {
      failure ??= error
      return group.map(() => null)
    }
  })
  if (fits && failure === undefined) return { fits, found: found as Verdict[] }
  // Units that cannot be given back stay charged, which admits less, never more.
  await giveBack(next, checks, found).catch(() => {})
  if (failure !== undefined) throw failure
  return { fits: false, found: await seenUncharged(next, checks, found as Verdict[]) }
}

/** Only what is known to have been charged: an unknown outcome is never refunded. */
async function giveBack(
  next: Stage,
  checks: readonly Check[],
  found: readonly (Verdict | null)[],
): Promise<void> {
  const refunds: Refund[] = checks.flatMap((check, index) => {
    const chargedAtUs = found[index]?.chargedAtUs ?? null
    return chargedAtUs === null ? [] : [{ check, units: check.cost, chargedAtUs }]
  })
  await inGroups(
    refunds,
    refund => refund.check,
    group => next.refund(group),
  )
}

/** Looks again after a charge was given back, because the answer is about the limits without it. */
function seenUncharged(
  next: Stage,
  checks: readonly Check[],
  found: readonly Verdict[],
): Promise<readonly Verdict[]> {
  const pairs = checks.map((check, index) => ({ check, verdict: found[index] as Verdict }))
  return inGroups(
    pairs,
    pair => pair.check,
    async group => {
      const verdicts = group.map(({ verdict }) => verdict)
      if (verdicts.every(verdict => verdict.chargedAtUs === null)) return verdicts
      const looked = await peekGroup(
        next,
        group.map(({ check }) => check),
      ).catch(() => [])
      return group.map(({ check, verdict }, index) => uncharged(verdict, check, looked[index]))
    },
  )
}

/**
 * It had room when it was asked: if somebody else has taken that since, it is still not what denied the request.
 */
function uncharged(verdict: Verdict, check: Check, looked: Verdict | undefined): Verdict {
  const remaining = looked?.remaining ?? verdict.remaining + check.cost
  const resetAfterUs = looked?.resetAfterUs ?? verdict.resetAfterUs
  return { allowed: true, remaining, retryAfterUs: 0, resetAfterUs, chargedAtUs: null }
}

/** Asks for each subject's items at once, in parallel, and restores the order of the results. */
async function inGroups<Item, Result>(
  items: readonly Item[],
  checkOf: (item: Item) => Check,
  ask: (group: readonly Item[]) => Promise<readonly Result[]> | readonly Result[],
): Promise<Result[]> {
  const groups = new Map<string, number[]>()
  for (const [index, item] of items.entries()) {
    const slot = slotSubject(checkOf(item).subject)
    const group = groups.get(slot)
    if (group === undefined) groups.set(slot, [index])
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
