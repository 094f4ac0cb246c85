/** Malformed encoding costs about as much as valid encoding: nobody can make a request expensive with it. */
import { expect, it } from 'vitest'
import { claimedMethods } from '../../src/policy/claimed-methods.js'
import { pathReadings } from '../../src/policy/path-readings.js'
import { cookieValues } from '../../src/subject/sources.js'

const TIMES = 2_000
const RUNS = 15

/** The shortest of several runs, because other load on the machine only adds to it. */
function shortestMs(work: () => unknown): number {
  let shortest = Number.POSITIVE_INFINITY
  for (let run = 0; run < RUNS; run++) {
    const began = performance.now()
    work()
    shortest = Math.min(shortest, performance.now() - began)
  }
  return shortest
}

it.each<[string, string, string, (text: string) => unknown]>([
  ['a path', 'x%fe', 'x%7e', text => pathReadings(`/${text}`)],
  ['a query', '&%fe=a', '&%7e=a', text => claimedMethods(() => undefined, `/?${text}`)],
  ['a cookie', 'id=%fe;', 'id=%7e;', text => cookieValues(text, 'id')],
])('a path with malformed escapes gets past no rule: %s', (_, malformed, sound, read) => {
  const [bad, good] = [malformed, sound].map(text => shortestMs(() => read(text.repeat(TIMES))))
  expect((bad as number) / (good as number)).toBeLessThan(4)
})

it('a long path that can be read in several ways is rejected before that is worked out', () => {
  expect(pathReadings(`/${'/;%2f'.repeat(3_000)}`)).toBeNull()
  expect(pathReadings(`/a%20b/?q=${'x'.repeat(15_000)}`)).not.toBeNull()
})
