import { describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import type { Check } from '../../check/check.js'
import { NOBODY_LISTENS } from '../../check/plan.js'
import { Plans } from '../../check/plans.js'
import { decodeChecks } from './decode.js'

const limit = slidingWindowLog({ limit: 10, window: '1h' })
const check: Check = { subject: 'user:1', scope: 'global', name: 'p.log', limit, cost: 2 }
const other: Check = { ...check, name: 'p.other' }
const NOW_US = 1_700_000_000_000_000
const VERDICT = [0, 8, 1, NOW_US]

describe('a reply that is not as the script promises is rejected, and admits nobody', () => {
  it.each<[string, unknown]>([
    ['nothing', null],
    ['no list', 'OK'],
    ['no time', []],
    ['no answer', [NOW_US]],
    ['no verdict', [NOW_US, 0]],
    ['a verdict too few', [NOW_US, 0, VERDICT]],
    ['an alternative that was not asked for', [NOW_US, 1, VERDICT, VERDICT]],
    ['another alternative that was not asked for', [NOW_US, -2, VERDICT, VERDICT]],
    ['a verdict too many', [NOW_US, 0, VERDICT, VERDICT, VERDICT]],
    ['a verdict that is too short', [NOW_US, 0, VERDICT, [0, 8, 1]]],
    ['a verdict of text', [NOW_US, 0, VERDICT, ['a', 8, 1, NOW_US]]],
    ['a fraction', [NOW_US, 0, VERDICT, [0.5, 8, 1, NOW_US]]],
    ['an empty text', [NOW_US, '', VERDICT, VERDICT]],
  ])('a reply that is not as the script promises is rejected, and admits nobody: %s', (_, reply) => {
    const asked = new Plans(NOBODY_LISTENS).pending({ alternatives: [[check, other]], shadow: [] })
    const decode = () => decodeChecks(reply, [asked])
    expect(decode).toThrow(expect.objectContaining({ code: 'ERR_HEADGATE_STORE_REPLY' }))
  })
})
