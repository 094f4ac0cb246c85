import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.js'
import { allAlgorithms, fileAlgorithms } from '../../src/algorithms/all-algorithms.js'
import { concurrency } from '../../src/algorithms/concurrency.js'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import { anyLimit } from './arbitraries.js'

/** Makes the limit that a policy file with these options has. */
function readBack(limit: Limit): Limit | undefined {
  const { algorithm, ...options } = limit.algorithm.optionsOf(limit)
  return fileAlgorithms.get(String(algorithm))?.parse(options)
}

describe('the options of a limit, as a policy file would have them', () => {
  it('the options of a limit make the same limit', () => {
    fc.assert(
      fc.property(anyLimit, limit => {
        expect(readBack(limit)).toEqual(limit)
      }),
    )
    for (const limit of [
      concurrency({ limit: 3, holdFor: '1.5s', name: 'streams' }),
      slidingWindowLog({ limit: 3, window: 0.015, counts: 'requests', name: 'a-b' }),
      tokenBucket({ capacity: 3, refillPerSecond: 1 / 3, counts: 'requests' }),
    ]) {
      expect(readBack(limit)).toEqual(limit)
    }
  })

  it.each([...allAlgorithms.values()])(
    'the sample of algorithm $name is valid and has its required options',
    algorithm => {
      const limit = algorithm.parse(algorithm.sample)
      expect(limit.algorithm).toBe(algorithm)
      const required = Object.entries(algorithm.fields).filter(([, field]) => field.required)
      expect(Object.keys(algorithm.sample)).toEqual(expect.arrayContaining(required.map(([name]) => name)))
      expect(JSON.stringify(limit)).toContain(`"algorithm":"${algorithm.name}"`)
    },
  )
})
