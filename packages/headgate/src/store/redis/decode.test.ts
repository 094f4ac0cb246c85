import { describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import type { Check } from '../../check/check.js'
import { NOBODY_LISTENS } from '../../check/plan.js'
import { Plans } from '../../check/plans.js'
import { decodeChecks } from './decode.js'
import { scripts } from './scripts.gen.js'

const limit = slidingWindowLog({ limit: 10, window: '1h' })
const check: Check = { subject: 'user:1', scope: 'global', name: 'p.log', limit, cost: 2 }
const other: Check = { ...check, name: 'p.other' }
const NOW_US = 1_700_000_000_000_000
/** Charged, with 2 units used before and the last of them a second ago. */
const STATE = [1, 2, NOW_US - 1_000_000, -1]
const DENIED = [0, 9, NOW_US - 1_000_000, NOW_US - 2_000_000]

describe('a reply that is not as the script promises is rejected, and admits nobody', () => {
  it.each<[string, unknown]>([
    ['nothing', null],
    ['no list', 'OK'],
    ['no time', []],
    ['no answer', [NOW_US]],
    ['no limit', [0, NOW_US]],
    ['a limit too few', [0, 6, NOW_US]],
    ['an alternative that was not asked for', [1, 6, 6, NOW_US]],
    ['another alternative that was not asked for', [-2, 6, 6, NOW_US]],
    ['a limit too many', [0, 6, 6, 6, NOW_US]],
    ['more left than there is', [0, 6, 11, NOW_US]],
    ['less left than nothing', [0, 6, -1, NOW_US]],
    ['an alternative charged that was denied', [0, 6, DENIED, NOW_US]],
    ['a state that is too short', [0, STATE, [1, 2], NOW_US]],
    ['a state of text', [0, STATE, [1, 'a', 1, NOW_US], NOW_US]],
    ['neither charged nor not', [0, STATE, [2, 2, 1, -1], NOW_US]],
    ['a fraction', [0, STATE, [1, 0.5, 1, -1], NOW_US]],
    ['an empty text', ['', 6, 6, NOW_US]],
  ])('a reply that is not as the script promises is rejected, and admits nobody: %s', (_, reply) => {
    const asked = new Plans(NOBODY_LISTENS).pending({ alternatives: [[check, other]], shadow: [] })
    const call = { script: scripts.decide, keys: [], args: [], checks: [asked], line: null }
    const decode = () => decodeChecks(reply, call, { nowUs: () => NOW_US, learn() {} }, new Map())
    expect(decode).toThrow(expect.objectContaining({ code: 'ERR_HEADGATE_STORE_REPLY' }))
  })
})
