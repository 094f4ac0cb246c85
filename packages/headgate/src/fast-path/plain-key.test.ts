import fc from 'fast-check'
import { expect, it } from 'vitest'
import { redisKey } from '../subject/key.js'
import { createKeyWriter } from './plain-key.js'

const part = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9_.-]{1,60}$/),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 120 }),
  fc.constantFrom('somebody', '1', 'somebody:1}', '{', '2001:db8:1:2::/64', 'v1:{somebody:1}:global'),
)
const type = part.filter(text => !text.includes(':'))

it('a key is written as redisKey writes it', () => {
  fc.assert(
    fc.property(
      fc.record({ prefix: part, tenant: fc.oneof(fc.constant(''), part) }),
      fc.array(
        fc.record({
          subject: fc.tuple(fc.oneof(type, fc.constant('ip')), part).map(([kind, id]) => `${kind}:${id}`),
          scope: fc.oneof(fc.constant('global'), part),
          name: fc.stringMatching(/^[a-z0-9.-]{1,12}$/),
        }),
        { minLength: 1, maxLength: 8 },
      ),
      ({ prefix, tenant }, checks) => {
        const keyOf = createKeyWriter(prefix, tenant)
        for (const check of checks) expect(keyOf(check)).toBe(redisKey({ prefix, tenant, ...check }))
      },
    ),
    { numRuns: 500 },
  )
})

it('more names than are kept have their keys, too', () => {
  const keyOf = createKeyWriter('ratelimit', '')
  for (let index = 0; index < 600; index++) {
    const check = { subject: 'user:42', scope: 'global', name: `api.limit-${index % 300}` }
    expect(keyOf(check)).toBe(redisKey({ prefix: 'ratelimit', tenant: '', ...check }))
  }
})
