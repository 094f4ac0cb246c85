/**
 * A cluster keeps subjects on different nodes, and no script spans two. So a question about several subjects is asked
 * of each, and what one granted is given back when another denies. That never admits more than the limits allow; for
 * the moment between charge and refund a concurrent request may find less than there is.
 */
import type { Answer, Check, Question, Refund, Verdict } from '../../engine/question.js'
import type { Store } from '../store.js'

const NO_CHECKS: readonly Check[] = []

/** Wraps a store that answers questions about one subject into one that answers about any number. */
export function splitBySubject(store: Store): Store {
  async function decideAcross(question: Question): Promise<Answer> {
    const verdicts: Verdict[][] = []
    let charged = -1
    for (const checks of question.alternatives) {
      const { fits, found } = await chargeAllOrNone(store, checks)
      verdicts.push(found)
      if (!fits) continue
      charged = verdicts.length - 1
      break
    }
    const shadow = await inGroups(question.shadow, checkOf, async group => {
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
    const shadow = await inGroups(question.shadow, checkOf, group => peekGroup(store, group))
    return { charged, verdicts, shadow }
  }

  return {
    source: store.source,
    decide: question => (hasOneSubject(question) ? store.decide(question) : decideAcross(question)),
    peek: question => (hasOneSubject(question) ? store.peek(question) : peekAcross(question)),
    refund: refunds =>
      inGroups(
        refunds,
        refund => refund.check,
        group => store.refund(group),
      ),
    async reset(checks) {
      await inGroups(checks, checkOf, async group => {
        await store.reset(group)
        return group
      })
    },
    close: () => store.close(),
  }
}

function checkOf(check: Check): Check {
  return check
}

function hasOneSubject(question: Question): boolean {
  const first = question.alternatives.find(checks => checks.length > 0)?.[0] ?? question.shadow[0]
  const isSame = (check: Check): boolean => check.subject === first?.subject
  return question.alternatives.every(checks => checks.every(isSame)) && question.shadow.every(isSame)
}

async function peekGroup(store: Store, checks: readonly Check[]): Promise<readonly Verdict[]> {
  return (await store.peek({ alternatives: [checks], shadow: NO_CHECKS })).verdicts[0] ?? []
}

async function chargeAllOrNone(
  store: Store,
  checks: readonly Check[],
): Promise<{ fits: boolean; found: Verdict[] }> {
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
  await giveBack(store, checks, found)
  if (failure !== undefined) throw failure
  return {
    fits: false,
    found: found.map((verdict, index) => uncharged(verdict as Verdict, checks[index] as Check)),
  }
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

function uncharged(verdict: Verdict, check: Check): Verdict {
  if (verdict.chargedAtUs === null) return verdict
  return { ...verdict, remaining: verdict.remaining + check.cost, chargedAtUs: null }
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
