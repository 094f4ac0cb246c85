import { expect } from 'vitest'
import { askStore } from '../../src/store/ask-store.ts'
import type { Store } from '../../src/store/store.js'
import { all, BUCKET, check, LOG } from './questions.ts'

/** Charges, peeks, refunds and resets, and checks the numbers each time. The subject must be new. */
export async function expectToWork(store: Store, subject: string): Promise<void> {
  const question = all(check(subject, LOG, 3), check(subject, BUCKET, 3))
  const remaining = async () =>
    (await askStore(store, question, true)).verdicts[0]?.map(({ remaining }) => remaining) ?? []

  const first = await askStore(store, question)
  expect(first.charged).toBe(0)
  const [log, bucket] = first.verdicts[0] ?? []
  expect([log?.remaining, bucket?.remaining]).toEqual([999_997, 997])
  expect(await remaining()).toEqual([999_997, 997])

  const given = await store.refund([
    { check: check(subject), units: 2, chargedAtUs: log?.chargedAtUs ?? null },
    { check: check(subject, BUCKET), units: 2, chargedAtUs: bucket?.chargedAtUs ?? null },
  ])
  expect(given).toEqual([2, 2])
  expect(await remaining()).toEqual([999_999, 999])

  await store.reset(question.alternatives[0] ?? [])
  expect(await remaining()).toEqual([1_000_000, 1_000])
}
