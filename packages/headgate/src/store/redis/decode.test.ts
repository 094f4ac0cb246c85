import { describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import type { Check } from '../../engine/question.js'
import { decodeAnswers } from './decode.js'

const limit = slidingWindowLog({ limit: 10, window: '1h' })
const check: Check = { subject: 'user:1', scope: 'global', name: 'p.log', limit, cost: 2 }
const other: Check = { ...check, name: 'p.other' }
const NOW_US = 1_700_000_000_000_000
const VERDICT = [0, 8, 1, NOW_US]

describe('a reply that is not as the script promises is refused, and admits nobody', () => {
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
    ['a list for a number', [NOW_US, [0], VERDICT, VERDICT]],
    ['truth for a number', [NOW_US, false, VERDICT, VERDICT]],
    ['a hexadecimal number', [NOW_US, '0x0', VERDICT, VERDICT]],
    ['a time before all times', [-1, 0, VERDICT, VERDICT]],
    ['a time beyond all times', [2 ** 60, 0, VERDICT, VERDICT]],
    ['a charge of a limit without room', [NOW_US, 0, VERDICT, [5, 0, 1, -1]]],
    ['more left than the limit', [NOW_US, 0, VERDICT, [0, 11, 1, NOW_US]]],
    ['less left than nothing', [NOW_US, 0, VERDICT, [0, -1, 1, NOW_US]]],
    ['more left after a charge than the limit', [NOW_US, 0, VERDICT, 11]],
    ['less left after a charge than nothing', [NOW_US, 0, VERDICT, -1]],
    ['a wait that is none', [NOW_US, -1, VERDICT, [-2, 0, 1, -1]]],
    ['a reset in the past', [NOW_US, -1, VERDICT, [5, 0, -1, -1]]],
  ])('a reply that is not as the script promises is refused, and admits nobody: %s', (_, reply) => {
    const decode = () => decodeAnswers(reply, [{ alternatives: [[check, other]], shadow: [] }])
    expect(decode).toThrow(expect.objectContaining({ code: 'ERR_HEADGATE_STORE_REPLY' }))
  })
})
