import { concurrency } from '../../algorithms/concurrency.js'
import { slidingWindowCounter } from '../../algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { tokenBucket } from '../../algorithms/token-bucket.js'
import { askStore } from '../../store/ask-store.js'
import { admitted, ask, check, decide, type Law, same } from './law.js'

const three = slidingWindowLog({ limit: 3, window: '1m' })
const ten = slidingWindowCounter({ limit: 10, window: '1h' })
const bucket = tokenBucket({ capacity: 5, refillPerSecond: 1 })

/** Several limits are one question, a denial leaves no trace, and shadow checks never bind. */
export const questionLaws: readonly Law[] = [
  {
    name: 'a store charges every check of an alternative, or none of them',
    async run(bench) {
      const question = ask(check(bench, ten), check(bench, three), check(bench, bucket))
      for (let time = 0; time < 3; time++) same((await askStore(bench.store, question)).charged, 0, 'request')
      const denied = await askStore(bench.store, question)
      same(denied.charged, -1, 'fourth request')
      same(
        denied.verdicts[0]?.map(verdict => [verdict.allowed, verdict.remaining, verdict.chargedAtUs]),
        [
          [true, 7, null],
          [false, 0, null],
          [true, 2, null],
        ],
        'verdicts of the denial',
      )
      same(
        (await askStore(bench.store, ask(check(bench, ten)), true)).verdicts[0]?.[0]?.remaining,
        7,
        'left of the others',
      )
    },
  },
  {
    name: 'a store charges the first alternative that admits and leaves the others alone',
    async run(bench) {
      const alternatives = [[check(bench, three)], [check(bench, ten)], [check(bench, bucket)]]
      const charged: number[] = []
      for (let time = 0; time < 5; time++) {
        charged.push((await askStore(bench.store, { alternatives, shadow: [] })).charged)
      }
      same(charged, [0, 0, 0, 1, 1], 'alternatives charged')
      const left = await askStore(bench.store, ask(check(bench, ten), check(bench, bucket)), true)
      same(
        left.verdicts[0]?.map(verdict => verdict.remaining),
        [8, 5],
        'left of the second and third',
      )
    },
  },
  {
    name: 'a store shows the verdicts of every alternative it looked at when all deny',
    async run(bench) {
      const alternatives = [[check(bench, three, 4)], [check(bench, bucket, 6)]]
      const answer = await askStore(bench.store, { alternatives, shadow: [] })
      same(answer.charged, -1, 'charged')
      same(answer.verdicts.length, 2, 'alternatives looked at')
    },
  },
  {
    name: 'a store writes nothing for a denied request',
    async run(bench) {
      await admitted(bench, three, 3)
      const before = await askStore(bench.store, ask(check(bench, three)), true)
      same(await admitted(bench, three, 50), 0, 'admitted beyond the limit')
      same(await askStore(bench.store, ask(check(bench, three)), true), before, 'state after 50 denials')
    },
  },
  {
    name: 'a store denies a cost above the capacity with "never", not with a date',
    async run(bench) {
      for (const limit of [three, ten, bucket]) {
        const verdict = (await decide(bench, limit, 1_000)).verdicts[0]?.[0]
        same([verdict?.allowed, verdict?.retryAfterUs], [false, Number.POSITIVE_INFINITY], limit.id)
      }
    },
  },
  {
    name: 'a store takes a limit of 0 as a ban',
    async run(bench) {
      for (const limit of [
        slidingWindowLog({ limit: 0, window: '1m' }),
        slidingWindowCounter({ limit: 0, window: '1m' }),
        slidingWindowCounter({ limit: 0, window: '1m', buckets: 4 }),
        tokenBucket({ capacity: 0, refillPerSecond: 1 }),
        concurrency({ limit: 0 }),
      ]) {
        const verdict = (await decide(bench, limit)).verdicts[0]?.[0]
        same([verdict?.allowed, verdict?.remaining, verdict?.resetAfterUs], [false, 0, 0], limit.id)
      }
    },
  },
  {
    name: 'a store charges a shadow check when it admits, even if the request is denied, and never lets it bind',
    async run(bench) {
      const shadow = [check(bench, bucket, 2)]
      const denied = await askStore(bench.store, { alternatives: [[check(bench, three, 4)]], shadow })
      same([denied.charged, denied.shadow[0]?.allowed, denied.shadow[0]?.remaining], [-1, true, 3], 'denied')
      await askStore(bench.store, { alternatives: [[check(bench, three)]], shadow })
      const allowed = await askStore(bench.store, { alternatives: [[check(bench, three)]], shadow })
      same(
        [allowed.charged, allowed.shadow[0]?.allowed, allowed.shadow[0]?.remaining],
        [0, false, 1],
        'allowed',
      )
    },
  },
  {
    name: 'a store admits a question without any check',
    async run(bench) {
      const { charged, verdicts } = await askStore(bench.store, { alternatives: [[]], shadow: [] })
      same({ charged, verdicts }, { charged: 0, verdicts: [[]] }, 'answer')
    },
  },
  {
    name: 'a store admits exactly the limit of many requests at once',
    async run(bench) {
      const answers = await Promise.all(
        Array.from({ length: 50 }, async (_, index) =>
          askStore(index % 2 === 0 ? bench.store : bench.other, ask(check(bench, ten))),
        ),
      )
      same(answers.filter(answer => answer.charged === 0).length, 10, 'admitted of 50 at once')
    },
  },
]
