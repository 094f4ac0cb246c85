import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Limit } from '../src/algorithms/algorithm.js'
import { slidingWindowCounter } from '../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../src/algorithms/token-bucket.js'
import type { Check } from '../src/check/check.js'
import type { Decision } from '../src/decision/decision.js'
import { isHeadgateError } from '../src/errors/headgate-error.js'
import { createLimiter } from '../src/limiter/limiter.js'
import { type Answer, askStore, type Question } from '../src/store/ask-store.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import type { Store } from '../src/store/store.js'
import type { SubjectInput } from '../src/subject/subject.js'
import { CASES_START_US, manualClock } from '../src/testing/manual-clock.js'
import { decide, peek } from './algorithms/decide-model.js'
import { algorithmOf, type State } from './algorithms/driver.js'

const MANY_KEYS = process.env.HEADGATE_LONG === '1' ? 10_000_000 : 2_000_000

const LIMITS = {
  'a.log': slidingWindowLog({ limit: 4, window: '1s' }),
  'a.counter': slidingWindowCounter({ limit: 5, window: '1s' }),
  'a.buckets': slidingWindowCounter({ limit: 4, window: '1s', buckets: 4 }),
  'a.bucket': tokenBucket({ capacity: 6, refillPerSecond: 3 }),
} satisfies Record<string, Limit>
type Name = keyof typeof LIMITS
const NAMES = Object.keys(LIMITS) as Name[]

function check(subject: string, limit: Limit, rest: Partial<Check> = {}): Check {
  return { subject, scope: 'global', name: `p.${limit.id}`, limit, cost: 1, ...rest }
}
const ask = (...checks: Check[]): Question => ({ alternatives: [checks], shadow: [] })
/** The embedded store answers synchronously. */
const now = <T>(eventually: T | Promise<T>): T => eventually as T
const allowed = (answer: Answer | Promise<Answer>) => now(answer).charged === 0
const remaining = (store: Store, one: Check) =>
  now(askStore(store, ask(one), true)).verdicts[0]?.[0]?.remaining

describe('below its bound, the embedded store', () => {
  const subject = fc.constantFrom('user:1', 'user:2', 'user:3', 'ip:::1')
  const scope = fc.constantFrom('global', 'api', 'user:1')
  const name = fc.constantFrom(...NAMES)
  const one = fc.record({ subject, scope, name, cost: fc.integer({ min: 0, max: 7 }) })
  const command = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constantFrom('decide' as const, 'peek' as const),
        alternatives: fc.array(fc.uniqueArray(one, { maxLength: 3, selector: nameOf }), {
          minLength: 1,
          maxLength: 2,
        }),
        shadow: fc.array(one, { maxLength: 2 }),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('refund' as const), one, which: fc.nat({ max: 9 }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('reset' as const), one }) },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('wait' as const), us: fc.nat({ max: 1_500_000 }) }),
    },
  )

  function nameOf(one: { subject: string; scope: string; name: string }): string {
    return JSON.stringify([one.name, one.subject, one.scope])
  }

  it('the embedded store is a Map of engine states: same answers, same refunds, same size', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 40 }), commands => {
        const clock = manualClock()
        const store = memoryStore({ maxKeys: 1_000, clock })
        const model = new Map<string, State>()
        /** Keys that were ever charged: those take a place. */
        const kept = new Set<string>()
        const charges: number[] = []
        const toCheck = (one: { subject: string; scope: string; name: Name; cost: number }): Check => ({
          ...one,
          limit: LIMITS[one.name],
        })
        const open = (check: Check) => {
          const state = model.get(nameOf(check)) ?? algorithmOf(check.limit).empty()
          model.set(nameOf(check), state)
          return state
        }
        for (const command of commands) {
          if (command.kind === 'wait') clock.advanceUs(command.us)
          else if (command.kind === 'reset') {
            const check = toCheck(command.one)
            store.reset([check])
            const { limit } = check
            if (kept.has(nameOf(check))) algorithmOf(limit).reset(limit, open(check), clock.nowUs())
          } else if (command.kind === 'refund') {
            const check = toCheck(command.one)
            const chargedAtUs = charges[command.which] ?? null
            const given = now(store.refund([{ check, units: check.cost, chargedAtUs }]))
            const { limit } = check
            expect(given).toEqual([
              algorithmOf(limit).refund(limit, open(check), check.cost, chargedAtUs, clock.nowUs()),
            ])
          } else {
            const question: Question = {
              alternatives: command.alternatives.map(checks => checks.map(toCheck)),
              shadow: command.shadow.map(toCheck),
            }
            const act = command.kind === 'decide' ? decide : peek
            const answer = now(askStore(store, question, command.kind === 'peek'))
            expect(answer).toEqual(act(question, open, clock.nowUs()))
            const charged = question.alternatives[answer.charged] ?? []
            const verdicts = [...(answer.verdicts[answer.charged] ?? []), ...answer.shadow]
            for (const [index, check] of [...charged, ...question.shadow].entries()) {
              const chargedAtUs = verdicts[index]?.chargedAtUs ?? null
              if (chargedAtUs === null) continue
              charges.push(chargedAtUs)
              kept.add(nameOf(check))
            }
          }
          expect(store.size).toBe(kept.size)
        }
      }),
      { numRuns: 1_500 },
    )
  })

  it('the embedded store is not written to by denials, peeks and costs of 0', () => {
    const store = memoryStore({ clock: manualClock() })
    const ban = slidingWindowLog({ limit: 0, window: '1m' })
    const log = LIMITS['a.log']
    for (let count = 0; count < 100; count++) {
      expect(allowed(askStore(store, ask(check(`ip:${count}`, ban))))).toBe(false)
      expect(
        allowed(
          askStore(store, ask(check(`ip:${count}`, log), check(`ip:${count}`, ban, { name: 'p.ban' }))),
        ),
      ).toBe(false)
      expect(allowed(askStore(store, ask(check(`ip:${count}`, log, { cost: 5 }))))).toBe(false)
      expect(allowed(askStore(store, ask(check(`ip:${count}`, log, { cost: 0 }))))).toBe(true)
      expect(allowed(askStore(store, ask(check(`ip:${count}`, log)), true))).toBe(true)
    }
    expect(store.size).toBe(0)
  })

  it('the embedded store keeps subjects and scopes apart, however they are written', () => {
    const store = memoryStore({ clock: manualClock() })
    const once = slidingWindowLog({ limit: 1, window: '1m' })
    const pairs = [
      ['user:a', 'login'],
      ['user:a\nlogin', 'global'],
      ['user:a:login', 'global'],
      ['user:a', 'global'],
      ['user:a\nlogin', 'login'],
      ['user:a', 'login\nlogin'],
      ['user:a', '\nlogin'],
      ['r:a', 'loginuse'],
      ['inuser:a', 'log'],
      [':5:loginuser:a', 'x'],
      ['5:loginuser:a', 'global'],
    ] as const
    for (const [subject, scope] of pairs) {
      expect(allowed(askStore(store, ask(check(subject, once, { scope })))), `${subject} ${scope}`).toBe(true)
    }
    expect(store.size).toBe(pairs.length)
  })

  it('the embedded store takes hostile keys for ordinary keys', () => {
    const store = memoryStore({ clock: manualClock() })
    const twice = slidingWindowLog({ limit: 2, window: '1m' })
    const keys = [
      '__proto__',
      'constructor',
      'toString',
      'hasOwnProperty',
      '0',
      '1',
      '-1',
      '4294967295',
      '\0',
      '\ud800',
      '',
    ]
    const checks = keys.flatMap(key => [
      check(`user:${key}`, twice),
      check(`${key}:x`, twice),
      check('user:1', twice, { scope: `s${key}` }),
      check('user:1', twice, { name: key }),
    ])
    for (const one of checks) {
      expect(allowed(askStore(store, ask(one)))).toBe(true)
      expect(allowed(askStore(store, ask(one)))).toBe(true)
      expect(allowed(askStore(store, ask(one)))).toBe(false)
    }
    store.reset(checks)
    for (const one of checks) expect(remaining(store, one)).toBe(2)
    expect(({} as Record<string, unknown>).subject).toBeUndefined()
  })

  it('the embedded store forgets on reset, and gives the place to the next key clean', () => {
    for (const limit of Object.values(LIMITS)) {
      const store = memoryStore({ clock: manualClock() })
      askStore(store, ask(check('user:1', limit, { cost: limit.limit })))
      expect(allowed(askStore(store, ask(check('user:1', limit))))).toBe(false)
      store.reset([check('user:1', limit), check('user:unknown', limit)])
      // The reset itself is kept: what was charged before it must not come back to what is charged now.
      expect(store.size).toBe(1)
      expect(allowed(askStore(store, ask(check('user:2', limit, { cost: limit.limit }))))).toBe(true)
      expect(allowed(askStore(store, ask(check('user:1', limit, { cost: limit.limit }))))).toBe(true)
      store.close()
      expect(store.size).toBe(0)
    }
  })
})

describe('at its bound, the embedded store', () => {
  it('the embedded store never keeps more than maxKeys, and forgets what has nothing used first', () => {
    const clock = manualClock()
    const store = memoryStore({ maxKeys: 10, clock })
    const limit = slidingWindowLog({ limit: 3, window: '1s' })
    for (let count = 0; count < 10; count++) askStore(store, ask(check(`old:${count}`, limit)))
    clock.advanceUs(1_000_000)
    askStore(store, ask(check('user:busy', limit, { cost: 2 })))
    for (let count = 0; count < 8; count++) askStore(store, ask(check(`new:${count}`, limit)))
    expect(store.size).toBe(10)
    expect(now(askStore(store, ask(check('user:busy', limit)), true)).verdicts[0]?.[0]?.remaining).toBe(1)
  })

  it.each(Object.values(LIMITS))(
    'the embedded store forgets no state of a question before it is charged: $id',
    limit => {
      const store = memoryStore({ maxKeys: 1, clock: manualClock() })
      const second = { ...limit, id: 'second' }
      const question = (subject: string) => ask(check(subject, limit), check(subject, second))
      let admitted = 0
      for (let count = 0; count < 50; count++) if (allowed(askStore(store, question('user:1')))) admitted++
      expect(admitted).toBe(limit.limit)
      // The states of one question may be more than the store holds, those of no other.
      expect(store.size).toBe(2)
      for (let count = 0; count < 50; count++) askStore(store, question(`user:${count}`))
      expect(store.size).toBe(2)
      // Another key that takes its place does not find the usage of user:1.
      store.reset([check('user:1', limit)])
      expect(now(askStore(store, ask(check('user:2', limit)))).verdicts[0]?.[0]?.remaining).toBe(
        limit.limit - 1,
      )
    },
  )

  it('the embedded store judges each key by its own numbers where tiers share a table', () => {
    const store = memoryStore({ maxKeys: 50, clock: manualClock() })
    const small = slidingWindowLog({ limit: 2, window: '1m' })
    const large = slidingWindowLog({ limit: 1_000, window: '1m' })
    askStore(store, ask(check('user:victim', small, { cost: 2 })))
    for (let count = 0; count < 500; count++)
      askStore(store, ask(check(`pro:${count}`, large, { cost: 900 })))
    expect(allowed(askStore(store, ask(check('user:victim', small))))).toBe(false)
  })

  it('the embedded store finds room in the newcomer’s own table when the largest holds only keys at their limit', () => {
    const store = memoryStore({ maxKeys: 100, clock: manualClock() })
    const login = slidingWindowLog({ limit: 1, window: '1m', name: 'login' })
    const api = slidingWindowLog({ limit: 100, window: '1m', name: 'api' })
    for (let count = 0; count < 40; count++) askStore(store, ask(check(`user:${count}`, api)))
    for (let count = 0; count < 60; count++) askStore(store, ask(check(`bot:${count}`, login)))
    for (let count = 0; count < 1_000; count++) {
      const answer = now(askStore(store, ask(check(`new:${count}`, api))))
      expect(answer.verdicts[0]?.[0]?.remaining).toBe(99)
    }
    expect(allowed(askStore(store, ask(check('bot:7', login))))).toBe(false)
  })

  it.each(Object.values(LIMITS))(
    'the embedded store serves newcomers when everybody is at their limit, frees nobody, and peek agrees: $algorithm',
    limit => {
      const clock = manualClock()
      const store = memoryStore({ maxKeys: 2_000, clock })
      const all = limit.limit
      for (let count = 0; count < 2_000; count++)
        askStore(store, ask(check(`user:${count}`, limit, { cost: all })))
      let admitted = 0
      for (let count = 0; count < 1_000; count++) {
        const question = ask(check(`new:${count}`, limit, { cost: all }))
        const peeked = allowed(askStore(store, question, true))
        const decided = allowed(askStore(store, question))
        if (peeked !== decided) throw new Error(`peek said ${peeked} of newcomer ${count}`)
        if (decided) admitted++
      }
      expect(admitted).toBeGreaterThanOrEqual(998)
      expect(store.size).toBe(2_000)
      for (const name of ['user', 'new']) {
        for (let count = 0; count < 1_000; count++) {
          const one = check(`${name}:${count}`, limit)
          const answer = now(askStore(store, ask(one)))
          expect(answer.charged, one.subject).toBe(-1)
          expect(answer.verdicts[0]?.[0]?.retryAfterUs).toBeLessThanOrEqual(2_000_000)
        }
      }
      expect(store.size).toBe(2_000)
      // When nothing of it counts any more, everybody has the whole limit again.
      clock.advanceUs(2_000_000)
      for (let count = 0; count < 1_000; count++)
        expect(allowed(askStore(store, ask(check(`user:${count}`, limit, { cost: all }))))).toBe(true)
    },
  )

  it('the fast path serves newcomers, too, behind 100,000 clients that used everything up', async () => {
    const limiter = createLimiter({ policies: { api: slidingWindowCounter({ limit: 3, window: '1h' }) } })
    const ask = (subject: SubjectInput) => limiter.checkNow(subject, { policy: 'api' }) as Decision
    for (let count = 0; count < 300_000; count++) ask(`user:${count % 100_000}`)
    let admitted = 0
    for (let count = 0; count < 2_000; count++) if (ask(`new:${count}`).allowed) admitted++
    expect(admitted).toBeGreaterThanOrEqual(1_990)
    let freed = 0
    for (let count = 0; count < 100_000; count++) if (ask(`user:${count}`).allowed) freed++
    expect(freed).toBe(0)
  })

  it('the embedded store lets an operator reset a client that was forgotten at its limit', () => {
    const store = memoryStore({ maxKeys: 100, clock: manualClock() })
    const limit = slidingWindowLog({ limit: 2, window: '1m' })
    for (let count = 0; count < 300; count++) askStore(store, ask(check(`user:${count}`, limit, { cost: 2 })))
    const victim = check('user:0', limit)
    expect(allowed(askStore(store, ask(victim)))).toBe(false)
    store.reset([victim])
    expect(remaining(store, victim)).toBe(2)
    expect(allowed(askStore(store, ask(victim)))).toBe(true)
    expect(store.size).toBe(100)
  })

  it('the embedded store keeps within its bound where a table that shrank has many free rows side by side', () => {
    const store = memoryStore({ maxKeys: 200, clock: manualClock() })
    const login = slidingWindowLog({ limit: 1, window: '1m', name: 'login' })
    const api = slidingWindowLog({ limit: 1, window: '1m', name: 'api' })
    for (const limit of [login, api, login]) {
      for (let count = 0; count < 1_000; count++) {
        askStore(store, ask(check(`${limit.id}:${store.size}-${count}`, limit)))
        expect(store.size).toBeLessThanOrEqual(200)
      }
    }
  })

  it.each(Object.values(LIMITS))('a victim stays denied through 250,000 churning keys: $algorithm', limit => {
    const clock = manualClock()
    const store = memoryStore({ maxKeys: 1_000, clock })
    const victim = ask(check('user:victim', limit))
    askStore(store, ask(check('user:victim', limit, { cost: limit.limit })))
    for (let count = 0; count < 250_000; count++) askStore(store, ask(check(`ip:${count}`, limit)))
    expect(allowed(askStore(store, victim))).toBe(false)
    expect(store.size).toBe(1_000)
  })

  it('a victim stays denied although each of a million churning keys is driven to its limit', () => {
    const store = memoryStore({ maxKeys: 500, clock: manualClock() })
    const limit = tokenBucket({ capacity: 2, refillPerSecond: 0.001 })
    const victim = ask(check('user:victim', limit))
    askStore(store, ask(check('user:victim', limit, { cost: 2 })))
    let denied = 0
    for (let count = 0; count < 1_000_000; count++) {
      const all = ask(check(`ip:${count}`, limit, { cost: 2 }))
      askStore(store, all)
      if (count % 10 === 0 && !allowed(askStore(store, all))) denied++
      if (count % 1_000 === 0 && allowed(askStore(store, victim))) throw new Error(`freed after ${count}`)
    }
    expect(denied).toBe(100_000)
    expect(allowed(askStore(store, victim))).toBe(false)
    expect(store.size).toBe(500)
  }, 120_000)

  it('the embedded store stays within its bound whatever is done to it', () => {
    const command = fc.record({
      subject: fc.nat({ max: 40 }),
      name: fc.constantFrom(...NAMES),
      cost: fc.integer({ min: 0, max: 7 }),
      reset: fc.boolean(),
      us: fc.constantFrom(0, 0, 0, 100_000, 700_000),
    })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.array(command, { maxLength: 200 }),
        (maxKeys, commands) => {
          const clock = manualClock()
          const store = memoryStore({ maxKeys, clock })
          for (const { subject, name, cost, reset, us } of commands) {
            clock.advanceUs(us)
            const limit = LIMITS[name]
            const one = check(`user:${subject}`, limit, { name, cost })
            if (reset && cost === 7) store.reset([one])
            const peeked = now(askStore(store, ask(one), true)).charged
            expect(now(askStore(store, ask(one))).charged).toBe(peeked)
            expect(store.size).toBeLessThanOrEqual(maxKeys)
          }
          const all = NAMES.flatMap(name =>
            Array.from({ length: 41 }, (_, id) => check(`user:${id}`, LIMITS[name], { name })),
          )
          for (const one of all) {
            store.reset([one])
            expect(remaining(store, one)).toBe(one.limit.limit)
          }
        },
      ),
      { numRuns: 400 },
    )
  })

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 24, '100', null, {}])(
    'the embedded store rejects maxKeys %s by name',
    maxKeys => {
      const rejection = (() => {
        try {
          return memoryStore({ maxKeys: maxKeys as number })
        } catch (error) {
          return error
        }
      })()
      expect(isHeadgateError(rejection) && rejection.code).toBe('ERR_HEADGATE_INVALID_OPTION')
      expect(String(rejection)).toContain('maxKeys: expected a whole number from 1 to 16776216; got ')
    },
  )
})

describe('two checks of one question', () => {
  it.each(Object.values(LIMITS))(
    'two checks of one question that meet in one state charge it twice: $algorithm',
    limit => {
      const clock = manualClock()
      const store = memoryStore({ clock })
      const wide = { ...limit, limit: 100 }
      const states = new Map<string, State>()
      const open = ({ subject }: Check) => {
        const state = states.get(subject) ?? algorithmOf(wide).empty()
        states.set(subject, state)
        return state
      }
      for (let count = 0; count < 60; count++) {
        clock.advanceUs(1_000)
        for (const subject of ['user:1', 'user:2', 'user:3']) {
          const question = ask(check(subject, wide), check(subject, wide))
          expect(now(askStore(store, question))).toEqual(decide(question, open, clock.nowUs()))
        }
      }
    },
  )
})

describe('in a process of its own, the embedded store', () => {
  let folder = ''
  const run = promisify(execFile)

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'headgate-memory-'))
    await build({
      stdin: {
        contents: `export { memoryStore, slidingWindowCounter, slidingWindowLog, tokenBucket } from './index.js'
export { askStore } from './store/ask-store.js'`,
        resolveDir: join(import.meta.dirname, '../src'),
      },
      bundle: true,
      format: 'esm',
      platform: 'node',
      outfile: join(folder, 'store.mjs'),
    })
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  /** Runs a script with the store and the garbage collector in scope. */
  async function script(body: string): Promise<string> {
    const names = 'askStore, memoryStore, slidingWindowLog, slidingWindowCounter, tokenBucket'
    const source = `import { ${names} } from ${JSON.stringify(join(folder, 'store.mjs'))}\n${body}`
    const { stdout } = await run(process.execPath, ['--expose-gc', '--input-type=module', '-e', source])
    return stdout
  }

  it('the embedded store stays within 250 MB through millions of keys', async () => {
    const out = await script(`
      let nowUs = ${CASES_START_US}
      const store = memoryStore({ clock: { nowUs: () => nowUs, unixMs: () => 0 } })
      const limits = [
        tokenBucket({ capacity: 5, refillPerSecond: 5 }),
        slidingWindowCounter({ limit: 5, window: '1s' }),
        slidingWindowLog({ limit: 5, window: '1s' }),
      ]
      let largest = 0
      for (let count = 0; count < ${MANY_KEYS}; count++) {
        // Half as many keys live in a window as there are places.
        if (count % 10 === 0) nowUs += 200
        const limit = limits[count % 3]
        const check = { subject: 'ip:' + count, scope: 'global', name: 'p.' + limit.id, limit, cost: 1 }
        const answer = askStore(store, { alternatives: [[check]], shadow: [] })
        if (answer.charged !== 0) throw new Error('a newcomer was denied')
        if (count % 100_000 === 0) largest = Math.max(largest, process.memoryUsage.rss())
      }
      const beforeBytes = process.memoryUsage.rss()
      gc()
      const { heapUsed, arrayBuffers } = process.memoryUsage()
      console.log(JSON.stringify({ size: store.size, largest: Math.max(largest, beforeBytes), held: heapUsed + arrayBuffers }))
    `)
    const { size, largest, held } = JSON.parse(out)
    expect(size).toBe(100_000)
    expect(largest).toBeLessThanOrEqual(250e6)
    expect(held).toBeLessThanOrEqual(100e6)
  }, 240_000)

  it('the embedded store does not grow when keys come, reach their limit and share for long', async () => {
    const out = await script(`
      let nowUs = ${CASES_START_US}
      const store = memoryStore({ maxKeys: 1_000, clock: { nowUs: () => nowUs, unixMs: () => 0 } })
      const limit = slidingWindowCounter({ limit: 1, window: '1s' })
      const round = from => {
        for (let count = from; count < from + 200_000; count++) {
          if (count % 5_000 === 0) nowUs += 1_000_000
          const check = { subject: 'ip:' + count, scope: 'global', name: 'p.c', limit, cost: 1 }
          askStore(store, { alternatives: [[check]], shadow: [] })
        }
        gc()
        const { heapUsed, arrayBuffers } = process.memoryUsage()
        return heapUsed + arrayBuffers
      }
      const first = round(0)
      round(200_000)
      console.log(JSON.stringify({ size: store.size, grown: round(400_000) - first }))
    `)
    const { size, grown } = JSON.parse(out)
    expect(size).toBe(1_000)
    expect(grown).toBeLessThan(1e6)
  })

  it('the embedded store keeps no process alive: there are no timers', async () => {
    const out = await script(`
      const store = memoryStore()
      const limit = slidingWindowLog({ limit: 1, window: '366d' })
      askStore(store, { alternatives: [[{ subject: 'a:b', scope: 'global', name: 'p.l', limit, cost: 1 }]], shadow: [] })
      console.log(process.getActiveResourcesInfo().filter(kind => kind === 'Timeout' || kind === 'Immediate').length)
    `)
    expect(out.trim()).toBe('0')
  })

  it('the embedded store is as quick with integer-like keys as with random ones', async () => {
    const out = await script(`
      const limit = slidingWindowCounter({ limit: 5, window: '1h' })
      const time = subjectOf => {
        const subjects = Array.from({ length: 300_000 }, (_, count) => subjectOf(count))
        const store = memoryStore({ maxKeys: 2_000_000 })
        const start = process.cpuUsage().user
        for (const subject of subjects) {
          askStore(store, { alternatives: [[{ subject, scope: 'global', name: 'p.c', limit, cost: 1 }]], shadow: [] })
        }
        return process.cpuUsage().user - start
      }
      const random = () => 'ip:' + Math.random().toString(36).slice(2)
      time(random)
      console.log(Math.min(time(count => 'user:' + count) / time(random), time(count => 'user:' + count * 64) / time(random)))
    `)
    expect(Number(out)).toBeLessThan(3)
  }, 60_000)
})
