/**
 * A cluster keeps subjects on different nodes, and no script spans two. So a question about several subjects is asked
 * of each, and what one granted is given back when another denies. That never admits more than the limits allow; for
 * the moment between charge and refund a concurrent request may find less than there is.
 */
import type { Answer, Check, Question, Refund, Verdict } from '../../engine/question.js'
import { firstCheckOf } from '../first-check.js'
import type { Store } from '../store.js'
import { type How, putOf, storeWith, tellLater, type Waiter } from '../waiter.js'
import { singleCheckOf } from './encode.js'

const NO_CHECKS: readonly Check[] = []
const UNKNOWN: Verdict = { allowed: true, remaining: 0, retryAfterUs: 0, resetAfterUs: 0, chargedAtUs: null }

/** Wraps a store that answers questions about one subject into one that answers about any number. */
export function splitBySubject(store: Store): Store {
  const put = putOf(store)

  async function decideAcross(question: Question): Promise<Answer> {
    const verdicts: (readonly Verdict[])[] = []
    let charged = -1
    for (const checks of question.alternatives) {
      const { fits, found } = await chargeAllOrNone(store, checks)
      verdicts.push(found)
      if (!fits) continue
      charged = verdicts.length - 1
      break
    }
    const shadow = await lookAside(question.shadow, async group => {
      return (await store.decide({ alternatives: [NO_CHECKS], shadow: group })).shadow
    })
    return { charged, verdicts, shadow }
  }

  async function peekAcross(question: Question): Promise<Answer> {
    const verdicts: Verdict[][] = []
    let charged = -1
    for (const checks of question.alternatives) {
      const found = await inGroups(checks, checkOf, group => peekGroup(store, group))
      verdicts.push(found)
      if (found.some(verdict => !verdict.allowed)) continue
      charged = verdicts.length - 1
      break
    }
    const shadow = await lookAside(question.shadow, group => peekGroup(store, group))
    return { charged, verdicts, shadow }
  }

  function putAcross(how: How, question: Question, waiter: Waiter<Answer>): Answer | null {
    if (hasOneSubject(question)) return put(how, question, waiter)
    const answer = how === 'decide' ? decideAcross(question) : peekAcross(question)
    tellLater(waiter, answer)
    return null
  }

  return storeWith(putAcross, {
    source: store.source,
    refund: (refunds: readonly Refund[]) =>
      inGroups(
        refunds,
        refund => refund.check,
        group => store.refund(group),
      ),
    async reset(checks: readonly Check[]) {
      await inGroups(checks, checkOf, async group => {
        await store.reset(group)
        return group
      })
    },
    close: () => store.close(),
  })
}

function checkOf(check: Check): Check {
  return check
}

function hasOneSubject(question: Question): boolean {
  if (singleCheckOf(question) !== null) return true
  const first = firstCheckOf(question)
  const isSame = (check: Check): boolean => check.subject === first?.subject
  return question.alternatives.every(checks => checks.every(isSame)) && question.shadow.every(isSame)
}

/** A shadow check that could not be made would not have denied anybody, and must not fail the request either. */
function lookAside(
  checks: readonly Check[],
  ask: (group: readonly Check[]) => Promise<readonly Verdict[]>,
): Promise<Verdict[]> {
  return inGroups(checks, checkOf, group => ask(group).catch(() => group.map(() => UNKNOWN)))
}

async function peekGroup(store: Store, checks: readonly Check[]): Promise<readonly Verdict[]> {
  return (await store.peek({ alternatives: [checks], shadow: NO_CHECKS })).verdicts[0] ?? []
}

async function chargeAllOrNone(
  store: Store,
  checks: readonly Check[],
): Promise<{ fits: boolean; found: readonly Verdict[] }> {
  let fits = true
  let failure: unknown
  const found = await inGroups(checks, checkOf, async group => {
    try {
      const answer = await store.decide({ alternatives: [group], shadow: NO_CHECKS })
      fits &&= answer.charged === 0
      return answer.verdicts[0] ?? []
    } catch (error) {
      failure ??= error
      return group.map(() => null)
    }
  })
  if (fits && failure === undefined) return { fits, found: found as Verdict[] }
  // What cannot be given back stays charged, which admits less, never more.
  await giveBack(store, checks, found).catch(() => {})
  if (failure !== undefined) throw failure
  return { fits: false, found: await seenUncharged(store, checks, found as Verdict[]) }
}

/** Only what is known to have been charged: an outcome that is not known is never refunded. */
async function giveBack(
  store: Store,
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
    group => store.refund(group),
  )
}

/** What was charged for a moment is looked at again: the answer is about the limits as they are without it. */
function seenUncharged(
  store: Store,
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
        store,
        group.map(({ check }) => check),
      ).catch(() => [])
      return group.map(({ check, verdict }, index) => uncharged(verdict, check, looked[index]))
    },
  )
}

/** It had room when it was asked: if somebody else has taken that since, it is still not what denied the request. */
function uncharged(verdict: Verdict, check: Check, looked: Verdict | undefined): Verdict {
  const remaining = looked?.remaining ?? verdict.remaining + check.cost
  const resetAfterUs = looked?.resetAfterUs ?? verdict.resetAfterUs
  return { allowed: true, remaining, retryAfterUs: 0, resetAfterUs, chargedAtUs: null }
}

/** Asks for each subject's items at once, in parallel, and puts the results back in the items' order. */
async function inGroups<Item, Result>(
  items: readonly Item[],
  checkOf: (item: Item) => Check,
  ask: (group: readonly Item[]) => Promise<readonly Result[]> | readonly Result[],
): Promise<Result[]> {
  const groups = new Map<string, number[]>()
  for (const [index, item] of items.entries()) {
    const { subject } = checkOf(item)
    const group = groups.get(subject)
    if (group === undefined) groups.set(subject, [index])
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
