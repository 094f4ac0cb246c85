/** One unit of one limit reaches a remote store without being resolved first, with the same results as any other question. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { slidingWindowCounter } from '../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../src/algorithms/token-bucket.js'
import type { Decision } from '../src/decision/decision.js'
import { HeadgateError } from '../src/errors/headgate-error.js'
import { createLimiter } from '../src/limiter/limiter.js'
import { createPipeline } from '../src/store/guard/pipeline.js'
import { parsePipelineOptions } from '../src/store/guard/pipeline-options.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { toStore } from '../src/store/stage.js'
import { manualClock } from '../src/testing/manual-clock.js'
import { systemTimers } from '../src/time/clock.js'

const POLICIES = {
  counter: slidingWindowCounter({ limit: 4, window: '20ms' }),
  buckets: slidingWindowCounter({ limit: 4, window: '20ms', buckets: 4 }),
  bucket: tokenBucket({ capacity: 4, refillPerSecond: 200 }),
  log: slidingWindowLog({ limit: 4, window: '20ms' }),
}
type PolicyName = keyof typeof POLICIES

const silent = { info() {}, warn() {}, error() {}, debug() {} }

const subject = fc.constantFrom(
  ...(['user:1', 'user:2', 'apikey:secret', 'user:~x', 'ip:203.0.113.7', 'ip:2001:db8::1'] as const),
)
const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant('checks' as const),
      // Questions with other costs share the call.
      asks: fc.array(fc.record({ subject, cost: fc.constantFrom(1, 1, 1, 1, 2, 0) }), {
        minLength: 1,
        maxLength: 8,
      }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('wait' as const), us: fc.nat({ max: 15_000 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('refund' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reset' as const), subject }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('down' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('up' as const) }) },
)

type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

function setUp(onStoreFailure: 'local' | 'open' | 'throw') {
  const clock = manualClock()
  const store = memoryStore({ clock })
  const calls: number[] = []
  let isDown = false
  let connected = (): void => {}
  const working = <Result>(work: () => Result): Promise<Awaited<Result>> =>
    isDown
      ? Promise.reject(new HeadgateError('ERR_HEADGATE_STORE', 'not there'))
      : Promise.resolve(work() as Awaited<Result>)
  const pipeline = createPipeline(
    {
      source: 'redis' as const,
      isSplit: false,
      laneOf: () => 0,
      nodeOf: () => '',
      nameOf: () => 'the store',
      ask(action, questions) {
        calls.push(questions.length)
        return working(() => Promise.all(questions.map(async question => store[action](question))))
      },
      refund: refunds => working(() => store.refund(refunds)),
      renew: async renewals => renewals.map(() => false),
      reset: checks => working(() => store.reset(checks)),
      heartbeat: async () => ({ live: 1, recent: 1, rewinds: 0 }),
      onConnected: listener => {
        connected = listener
      },
      close() {},
    },
    parsePipelineOptions({ processes: 1, onStoreFailure, logger: silent }),
    // The store is probed only on a new connection.
    { clock, timers: { ...systemTimers, inBackground: () => () => {} }, random: () => 0.5 },
  )
  const limiter = createLimiter({
    store: toStore(pipeline, { clock }),
    policies: POLICIES,
    subject: { secret: 'of a test' },
  })
  return {
    clock,
    limiter,
    calls,
    down() {
      isDown = true
    },
    async up() {
      isDown = false
      connected()
      await new Promise(setImmediate)
    },
  }
}

type World = ReturnType<typeof setUp>

/** Passing the default explicitly is enough for the question to be resolved. */
async function play(world: World, policy: PolicyName, history: readonly Step[], isPlain: boolean) {
  const { limiter, clock } = world
  const told: unknown[] = []
  let charged: Decision | null = null
  for (const one of history) {
    if (one.kind === 'wait') clock.advanceUs(one.us)
    else if (one.kind === 'down') world.down()
    else if (one.kind === 'up') await world.up()
    else if (one.kind === 'reset') {
      told.push(await limiter.reset(one.subject, { policy }).catch(codeOf))
    } else if (one.kind === 'refund') {
      if (charged !== null) told.push(await limiter.refund(charged).catch(codeOf))
    } else {
      const decisions = await Promise.all(
        one.asks.map(({ subject, cost }) => {
          const ask = isPlain && cost === 1 ? { policy } : { policy, cost, scope: 'global' }
          return limiter.check(subject, ask).catch(codeOf)
        }),
      )
      for (const decision of decisions) {
        told.push(typeof decision === 'string' ? decision : decision.toJSON())
        if (typeof decision !== 'string' && decision.allowed && decision.cost > 0) charged = decision
      }
    }
  }
  return told
}

function codeOf(error: unknown): string {
  return error instanceof HeadgateError ? error.code : String(error)
}

it.each(Object.keys(POLICIES) as PolicyName[])(
  'one unit asked without being resolved is decided and remembered as every other question: %s',
  async policy => {
    const seen = { calls: 0, denied: 0, local: 0 }
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40, size: 'max' }),
        fc.constantFrom('local' as const, 'open' as const, 'throw' as const),
        async (history, mode) => {
          const [plain, others] = [setUp(mode), setUp(mode)]
          const told = await play(plain, policy, history, true)
          expect(told).toEqual(await play(others, policy, history, false))
          expect(plain.calls).toEqual(others.calls)
          for (const one of told as { allowed?: boolean; source?: string }[]) {
            if (one?.allowed === false) seen.denied++
            if (one?.source === 'local') seen.local++
          }
          seen.calls += plain.calls.length
        },
      ),
      { numRuns: 60 },
    )
    expect(seen.calls).toBeGreaterThan(100)
    expect(seen.denied).toBeGreaterThan(100)
    expect(seen.local).toBeGreaterThan(10)
  },
)

it('a unit is decided synchronously if there is nothing to wait for', async () => {
  const world = setUp('local')
  world.down()
  const ask = { policy: 'counter' } as const
  for (let count = 0; count < 5; count++) await world.limiter.check(`user:${count}`, ask)
  const decision = world.limiter.checkNow('user:9', ask)
  expect(decision).toMatchObject({ allowed: true, source: 'local' })
})

it('a failure without a failure mode is passed on', async () => {
  const world = setUp('throw')
  world.down()
  await expect(world.limiter.check('user:1', { policy: 'log' })).rejects.toMatchObject({
    code: 'ERR_HEADGATE_STORE',
  })
})
