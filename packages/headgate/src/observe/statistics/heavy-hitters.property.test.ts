import fc from 'fast-check'
import { expect, it } from 'vitest'
import { HeavyHitters } from './heavy-hitters.js'

it('a count is never below the true one, above it by no more than its error, and no frequent subject is missing', () => {
  const denials = fc.array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: 9 })), {
    maxLength: 400,
  })
  fc.assert(
    fc.property(denials, fc.integer({ min: 1, max: 12 }), (all, room) => {
      const hitters = new HeavyHitters<null>(room)
      const truth = new Map<string, number>()
      let total = 0
      for (const [who, count] of all) {
        const subject = `user:${who}`
        hitters.add(subject, count, null)
        truth.set(subject, (truth.get(subject) ?? 0) + count)
        total += count
      }
      const top = hitters.top(room)
      expect(top.length).toBeLessThanOrEqual(room)
      for (const { subject, count, error } of top) {
        const real = truth.get(subject) as number
        expect(count).toBeGreaterThanOrEqual(real)
        expect(count - error).toBeLessThanOrEqual(real)
      }
      const kept = new Set(top.map(({ subject }) => subject))
      for (const [subject, real] of truth) if (real > total / room) expect(kept).toContain(subject)
    }),
  )
})
