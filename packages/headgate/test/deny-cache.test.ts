/**
 * Random histories of one process against a store that answers late, in order, and by the engine. Whenever the
 * cache answers by itself, the store's state at that moment is checked: it would have denied too, and for as long.
 */
import { describe, expect, it } from 'vitest'
import type { Limit } from '../src/algorithms/algorithm.js'
import { slidingWindowCounter } from '../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../src/algorithms/token-bucket.js'
import type { Check, Refund } from '../src/check/check.js'
import { type Answer, askStore, type Question } from '../src/store/ask-store.js'
import { type MemoryStore, memoryStore } from '../src/store/memory/memory-store.js'
import { type ManualClock, manualClock } from '../src/testing/manual-clock.js'
import { seededRandom } from '../src/testing/seeded-random.js'
import { manualTimers } from './support/manual-timers.ts'
import { slowRemote } from './support/slow-remote.ts'

const HISTORIES = 100_000
const STEPS = 16
/** How many histories share an engine, each with subjects of its own. */
const PER_ENGINE = 500

/** Limits by family; those of one family share a state. */
const FAMILIES: readonly (readonly [Limit, Limit])[] = [
  [slidingWindowLog({ limit: 2, window: '1s' }), slidingWindowLog({ limit: 4, window: '1s' })],
  [slidingWindowCounter({ limit: 2, window: '1s' }), slidingWindowCounter({ limit: 5, window: '1s' })],
  [
    slidingWindowCounter({ limit: 3, window: '2s', buckets: 4 }),
    slidingWindowCounter({ limit: 4, window: '2s', buckets: 4 }),
  ],
  [tokenBucket({ capacity: 2, refillPerSecond: 3 }), tokenBucket({ capacity: 4, refillPerSecond: 3 })],
]

interface Tally {
  fromCache: number
  wrongDenials: number
  wrongWaits: number
  wrongAdmissions: number
}

type Random = (below: number) => number

/** The questions of one history: about one or two states of a subject, mostly for one unit. */
function asker(random: Random, seed: number): () => Question {
  const families = [random(FAMILIES.length), random(FAMILIES.length)]
  const check = (which: number): Check => {
    const limit = FAMILIES[families[which] as number]?.[random(8) === 0 ? 1 : 0] as Limit
    const subject = `user:${seed}-${random(6) === 0 ? 1 : 0}`
    const cost = random(5) === 0 ? random(4) : 1
    return { subject, scope: 'global', name: `p.${limit.id}`, limit, cost }
  }
  return () => {
    const first = check(0)
    const kind = random(10)
    if (kind < 7) return { alternatives: [[first]], shadow: [] }
    const second = { ...check(1), ...(kind < 9 && { subject: first.subject }) }
    const shadow = random(12) === 0 ? [{ ...first, name: `shadow.${first.limit.id}` }] : []
    if (kind === 7) return { alternatives: [[first], [second]], shadow }
    // A question never names a state twice.
    return { alternatives: [second.name === first.name ? [first] : [first, second]], shadow }
  }
}

async function play(seed: number, engine: MemoryStore, clock: ManualClock, tally: Tally): Promise<void> {
  const dice = seededRandom(seed)
  const random: Random = below => Math.floor(dice() * below)
  const checksOfRequest = asker(random, seed)
  const late = slowRemote(engine)
  const { timers } = manualTimers()
  const cached = late.open({ clock, timers, deniedSubjects: 1 + random(3) })
  const charges: Refund[] = []
  for (let step = 0; step < STEPS; step++) {
    const what = random(14)
    if (what < 10) ask(checksOfRequest())
    else if (what < 12) clock.advanceUs([1, 900, 30_000, 250_000, 999_999, 1_000_000][random(6)] as number)
    else if (what === 12 && charges.length > 0)
      void cached.refund([charges[random(charges.length)] as Refund])
    else if (what === 13 && random(3) === 0) void cached.reset(checksOfRequest().alternatives.flat())
    // Often everything is answered at once, as on a fast network; often some calls are still in flight.
    if (random(4) > 0) late.letThrough(random(3) === 0 ? 1 : 100)
    await settled()
  }

  function ask(question: Question): void {
    const now = askStore(engine, question, true) as Answer
    const answer = askStore(cached, question)
    if (answer instanceof Promise) {
      void answer.then(({ charged, verdicts }) => {
        const checks = question.alternatives[charged] ?? []
        for (const [index, check] of checks.entries()) {
          const chargedAtUs = verdicts[charged]?.[index]?.chargedAtUs ?? null
          charges.push({ check, units: Math.max(1, check.cost), chargedAtUs })
        }
      })
      return
    }
    tally.fromCache++
    if (answer.charged >= 0) tally.wrongAdmissions++
    if (now.charged >= 0) tally.wrongDenials++
    if (waitUs(answer) > waitUs(now)) tally.wrongWaits++
  }
}

function waitUs({ verdicts }: Answer): number {
  return Math.min(...verdicts.map(list => Math.max(...list.map(({ retryAfterUs }) => retryAfterUs))))
}

async function settled(): Promise<void> {
  for (let hop = 0; hop < 4; hop++) await null
}

describe('the deny cache', () => {
  it('the deny cache gives no denial the store would not have given, and admits nothing', {
    timeout: 240_000,
  }, async () => {
    const tally: Tally = { fromCache: 0, wrongDenials: 0, wrongWaits: 0, wrongAdmissions: 0 }
    let clock = manualClock()
    let engine = memoryStore({ clock })
    for (let seed = 1; seed <= HISTORIES; seed++) {
      if (seed % PER_ENGINE === 0) {
        clock = manualClock()
        engine = memoryStore({ clock })
      }
      await play(seed, engine, clock, tally)
      const { wrongDenials, wrongWaits, wrongAdmissions } = tally
      if (wrongDenials + wrongWaits + wrongAdmissions > 0) expect({ seed, ...tally }).toBeNull()
    }
    expect(tally.fromCache).toBeGreaterThan(HISTORIES / 5)
  })

  const limit = slidingWindowLog({ limit: 1, window: '10s' })
  const checkOf = (cost = 1, numbers: Limit = limit): Check => ({
    subject: 'user:1',
    scope: 'global',
    name: 'p.log',
    limit: numbers,
    cost,
  })
  const asking = (cost = 1, numbers: Limit = limit): Question => ({
    alternatives: [[checkOf(cost, numbers)]],
    shadow: [],
  })

  /** A store with a cache, whose calls are answered as soon as they are awaited. */
  function remembering() {
    const clock = manualClock()
    const late = slowRemote(memoryStore({ clock }))
    const { timers } = manualTimers()
    const cached = late.open({ clock, timers, deniedSubjects: 10 })
    const through = async <T>(work: T | Promise<T>): Promise<T> => {
      await settled()
      late.letThrough()
      return work
    }
    const ask = async (question: Question): Promise<Answer> => through(askStore(cached, question))
    return { clock, cached, ask, through, asked: late.calls }
  }

  /** The same, after a denial. */
  async function denied() {
    const store = remembering()
    await store.ask(asking())
    await store.ask(asking())
    return store
  }

  it('the deny cache asks once a second however often a denied client asks, and counts the wait down', async () => {
    const { clock, ask, asked } = await denied()
    expect(asked()).toBe(2)
    for (let ms = 1; ms < 1_000; ms++) {
      clock.advanceUs(1_000)
      const { charged, verdicts } = await ask(asking())
      expect([charged, verdicts[0]?.[0]?.retryAfterUs]).toEqual([-1, 10_000_000 - ms * 1_000])
    }
    expect(asked()).toBe(2)
    clock.advanceUs(1_000)
    await ask(asking())
    expect(asked()).toBe(3)
  })

  it('a remembered denial ends with a reset or a refund in this process, and with other numbers', async () => {
    const reset = await denied()
    await reset.through(reset.cached.reset([checkOf()]))
    expect((await reset.ask(asking())).charged).toBe(0)
    const refund = await denied()
    await refund.through(refund.cached.refund([{ check: checkOf(), units: 1, chargedAtUs: null }]))
    expect((await refund.ask(asking())).charged).toBe(0)
    const raised = await denied()
    const more = slidingWindowLog({ limit: 2, window: '10s' })
    expect((await raised.ask(asking(1, more))).charged).toBe(0)
  })

  it('the deny cache denies a client that keeps asking for other amounts without asking for each', async () => {
    const roomy = slidingWindowLog({ limit: 100, window: '10s' })
    const { ask, asked } = remembering()
    await ask(asking(100, roomy))
    for (let cost = 1; cost <= 50; cost++) {
      expect((await ask(asking(cost, roomy))).charged).toBe(-1)
    }
    expect(asked()).toBe(9)
  })

  it('the deny cache does not answer for a question with a shadow check, which is to be counted', async () => {
    const { ask, asked } = await denied()
    const question = { ...asking(), shadow: [{ ...checkOf(), name: 'p.shadow' }] }
    for (let times = 0; times < 3; times++) await ask(question)
    expect(asked()).toBe(5)
  })
})
