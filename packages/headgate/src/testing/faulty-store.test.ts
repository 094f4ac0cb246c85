import { describe, expect, it } from 'vitest'
import { keepLines } from '../../test/support/kept-lines.ts'
import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import { isHeadgateError } from '../errors/headgate-error.js'
import { createLimiter } from '../limiter/limiter.js'
import { memoryStore } from '../store/memory/memory-store.js'
import { type Fault, faultyStore } from './faulty-store.js'
import { type GuardedStoreOptions, guardedStore } from './guarded-store.js'
import { manualClock } from './manual-clock.js'
import { storeContract } from './store-contract.js'

const POLICIES = { api: slidingWindowLog({ limit: 100, window: '1h' }) }
const OPTIONS = { policy: 'api' } as const

function bare(seed?: number) {
  const store = faultyStore(memoryStore(), seed === undefined ? {} : { seed })
  const limiter = createLimiter({ store, policies: POLICIES })
  const ask = async (): Promise<string> => {
    try {
      return (await limiter.check('user:1', OPTIONS)).source
    } catch (error) {
      return isHeadgateError(error) ? error.code : String(error)
    }
  }
  const used = async (): Promise<number> => 100 - (await limiter.peek('user:1', OPTIONS)).remaining
  return { store, faults: store.faults, limiter, ask, used }
}

function guarded(options: GuardedStoreOptions = {}) {
  const faulty = faultyStore(memoryStore())
  const { logger, lines } = keepLines()
  const store = guardedStore(faulty, { probeAfterMs: 20, logger, ...options })
  const limiter = createLimiter({ store, policies: POLICIES })
  const ask = async (): Promise<string> => (await limiter.check('user:1', OPTIONS)).source
  return { faults: faulty.faults, store, limiter, ask, lines }
}

describe('a faulty store without faults', () => {
  for (const { name, run } of storeContract({
    open: clock => faultyStore(memoryStore({ clock })),
    shared: false,
  })) {
    it(name, run)
  }
})

describe('a faulty store', () => {
  it('a faulty store fails the next calls before the store is asked, then works', async () => {
    const { faults, ask, used } = bare()
    faults.next(3, { type: 'error' })
    const failure = 'ERR_HEADGATE_STORE'
    expect([await ask(), await ask(), await ask(), await ask()]).toEqual([
      failure,
      failure,
      failure,
      'memory',
    ])
    expect(await used()).toBe(1)
    expect(faults.injected()).toEqual({ error: 3, 'lost-reply': 0, delay: 0, hang: 0 })
  })

  it('a faulty store fails with the error it is given', async () => {
    const { faults, ask } = bare()
    faults.next(1, { type: 'error', error: new Error('READONLY') })
    expect(await ask()).toBe('Error: READONLY')
  })

  it('a faulty store loses a reply after the charge was made', async () => {
    const { faults, ask, used } = bare()
    faults.next(1, { type: 'lost-reply' })
    expect(await ask()).toBe('ERR_HEADGATE_STORE')
    expect(await used()).toBe(1)
  })

  it('a faulty store answers late', async () => {
    const { faults, ask, used } = bare()
    faults.next(1, { type: 'delay', ms: 20 })
    const late = ask()
    expect(await used()).toBe(0)
    expect(await late).toBe('memory')
    expect(await used()).toBe(1)
  })

  it('a faulty store keeps calls hanging until the faults stop, and then carries them out', async () => {
    const { faults, ask, used } = bare()
    faults.always({ type: 'hang' })
    const hanging = [ask(), ask()]
    faults.next(1, { type: 'delay', ms: 0 })
    expect(await used()).toBe(0)
    faults.stop()
    expect(await Promise.all(hanging)).toEqual(['memory', 'memory'])
    expect(await used()).toBe(2)
  })

  it('closing a faulty store ends the calls that hang', async () => {
    const { faults, ask, limiter } = bare()
    faults.always({ type: 'hang' })
    const hanging = ask()
    await limiter.close()
    expect(await hanging).toBe('ERR_HEADGATE_STORE')
  })

  it('a faulty store draws the same faults for the same seed, about as often as asked', async () => {
    const outcomes = async (seed: number): Promise<string> => {
      const { faults, ask } = bare(seed)
      faults.randomly([
        { fault: { type: 'error' }, probability: 0.2 },
        { fault: { type: 'lost-reply' }, probability: 0.1 },
      ])
      const found: string[] = []
      for (let time = 0; time < 500; time++) found.push(await ask())
      const { error, 'lost-reply': lost } = faults.injected()
      expect(error).toBeGreaterThan(70)
      expect(error).toBeLessThan(130)
      expect(lost).toBeGreaterThan(25)
      expect(lost).toBeLessThan(80)
      return found.join()
    }
    expect(await outcomes(7)).toBe(await outcomes(7))
    expect(await outcomes(7)).not.toBe(await outcomes(8))
  })

  it.each<[string, () => void]>([
    ['fault.type', () => bare().faults.always({ type: 'slow' } as unknown as Fault)],
    ['fault.ms', () => bare().faults.always({ type: 'delay', ms: -1 })],
    ['fault.error', () => bare().faults.always({ type: 'error', error: 'no' as unknown as Error })],
    ['count', () => bare().faults.next(0, { type: 'error' })],
    [
      'odds',
      () =>
        bare().faults.randomly([
          { fault: { type: 'error' }, probability: 0.6 },
          { fault: { type: 'hang' }, probability: 0.6 },
        ]),
    ],
    ['odds[0].probability', () => bare().faults.randomly([{ fault: { type: 'hang' }, probability: 2 }])],
    ['seed', () => bare(-1)],
    ['store', () => faultyStore({} as never)],
    ['deadlineMs', () => guarded({ deadlineMs: 0 })],
    ['onStoreFailure', () => guarded({ onStoreFailure: 'never' as never })],
  ])('a faulty store rejects a bad %s by name', (field, act) => {
    expect(act).toThrow(expect.objectContaining({ field, expected: expect.any(String) }))
  })
})

describe('a guarded store', () => {
  it('a guarded store decides every request while the store behind it hangs, and asks the store again afterwards', async () => {
    const { faults, ask, store, lines } = guarded()
    expect(await ask()).toBe('memory')
    faults.always({ type: 'hang' })
    for (let time = 0; time < 6; time++) expect(await ask()).toBe('local')
    expect(store.health().breakers).toEqual({ '': 'open' })
    expect(lines.join()).toContain('ERR_HEADGATE_STORE_TIMEOUT')
    faults.stop()
    while (Object.keys(store.health().breakers).length > 0) await new Promise(done => setTimeout(done, 5))
    expect(await ask()).toBe('memory')
  })

  it.each(['open', 'closed'] as const)('a guarded store falls back to %s when configured to', async mode => {
    const { faults, ask, limiter } = guarded({ onStoreFailure: mode })
    faults.always({ type: 'error' })
    expect(await ask()).toBe(mode)
    await limiter.close()
  })

  it('a guarded store does not repeat a charge whose reply was lost', async () => {
    const { faults, ask, limiter } = guarded()
    faults.next(1, { type: 'lost-reply' })
    expect(await ask()).toBe('local')
    expect((await limiter.peek('user:1', OPTIONS)).remaining).toBe(99)
  })

  it('a guarded store reads a decision by the clock of the store behind it', async () => {
    const clock = manualClock()
    const faulty = faultyStore(memoryStore({ clock }))
    const limiter = createLimiter({
      store: guardedStore(faulty, { logger: keepLines().logger }),
      policies: POLICIES,
    })
    const hourMs = 3_600_000
    expect((await limiter.check('user:1', OPTIONS)).resetAt).toBe(clock.unixMs() + hourMs)
    faulty.faults.always({ type: 'error' })
    const local = await limiter.check('user:2', OPTIONS)
    expect([local.source, local.resetAt]).toEqual(['local', clock.unixMs() + hourMs])
    await limiter.close()
  })
})
