// The tools of the fault report: a limiter on a Redis that can be hurt, an open loop of requests, percentiles.
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, slidingWindowLog, tokenBucket } from '../../dist/index.js'
import { redisStore } from '../../dist/redis.js'
import { singleClient } from '../redis-clients/topologies.ts'

export const DEADLINE_MS = 30
/** A few hot subjects and many cold ones, as an app sees them. */
const someSubject = () => `user:${Math.floor(1_000 * Math.random() ** 3)}`
/** All subjects equally often. */
export const anyOf = subjects => () => subjects[Math.floor(subjects.length * Math.random())]

const POLICIES = {
  roomy: tokenBucket({ capacity: 1_000_000, refillPerSecond: 1_000_000 }),
  log: slidingWindowLog({ limit: 100, window: '2s' }),
  /** Its charges can be counted on the server afterwards. */
  countable: slidingWindowLog({ limit: 1_000_000, window: '1h' }),
  /** Two keys for each subject: in the middle of a move they are on both sides. */
  twoKeys: [
    slidingWindowLog({ limit: 1_000_000, window: '1h' }),
    slidingWindowLog({ limit: 1_000_000, window: '2h' }),
  ],
  replicated: slidingWindowLog({ limit: 50, window: '1m' }),
}

/** Opens a limiter with the defaults on one server, with the given client library. */
export function openLimiter(library, port, options = {}, login = {}) {
  return openLimiterOn(singleClient(port, login)(library).client, options)
}

/** The same on any client. */
export async function openLimiterOn(client, options = {}) {
  const states = []
  const warnings = []
  const store = redisStore(client, {
    logEveryMs: 86_400_000,
    onWarning: ({ code }) => warnings.push(code),
    onEvent: event => {
      if (event.type === 'breaker') states.push({ state: event.state, atMs: performance.now() })
    },
    ...options,
  })
  const limiter = createLimiter({ store, policies: POLICIES })
  await store.ready()
  return { limiter, store, states, warnings, close: () => limiter.close() }
}

/**
 * Sends `rps` requests a second whether or not earlier ones were answered, and records for each who decided and how
 * long it took from sending. Runs until `stop` is called.
 */
export function openLoop({ limiter }, rps, { policy = 'roomy', pick = someSubject } = {}) {
  const results = []
  let rejected = 0
  let running = true
  let pending = 0
  const startMs = performance.now()
  let sent = 0

  function send() {
    const sentMs = performance.now()
    const subject = pick()
    pending++
    limiter
      .check(subject, { policy })
      .then(
        ({ source, allowed, client }) => {
          const doneMs = performance.now()
          results.push({ subject, sentMs, doneMs, ms: doneMs - sentMs, source, allowed, client })
        },
        () => {
          rejected++
        },
      )
      .finally(() => {
        pending--
      })
  }

  const finished = (async () => {
    while (running) {
      const due = ((performance.now() - startMs) / 1000) * rps
      while (sent < due) {
        send()
        sent++
      }
      await sleep(1)
    }
    while (pending > 0) await sleep(1)
  })()

  return {
    results,
    async stop() {
      running = false
      await finished
      return { results, rejected }
    },
  }
}

/** The p-th percentile of numbers, 0 to 100. */
export function percentile(numbers, p) {
  if (numbers.length === 0) return Number.NaN
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil((p / 100) * sorted.length) - 1)]
}

/** Returns how long after `fromMs` Redis decided a request that was sent after it. */
export function backAfterMs(results, fromMs) {
  const first = results.find(({ sentMs, source }) => sentMs >= fromMs && source === 'redis')
  return first === undefined ? Number.POSITIVE_INFINITY : first.doneMs - fromMs
}

export const flips = (states, fromMs = 0) =>
  states.filter(({ state, atMs }) => state === 'closed' && atMs >= fromMs).length

export const ms = number => (Number.isFinite(number) ? `${number.toFixed(number < 10 ? 2 : 0)} ms` : 'never')
