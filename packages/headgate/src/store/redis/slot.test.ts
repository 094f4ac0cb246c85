import { expect, it } from 'vitest'
import { slotOf } from './slot.js'

it('the slot of a key is the one Redis computes, of the hash tag where there is one', () => {
  // The specification's own example of CRC16: "123456789" gives 0x31C3.
  expect(slotOf('123456789')).toBe(0x31c3 % 16_384)
  expect(slotOf('ratelimit:v2:{user:42}:global:api.log-1m')).toBe(slotOf('user:42'))
  expect(slotOf('a{}b')).not.toBe(slotOf(''))
})
