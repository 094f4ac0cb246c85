import { expect, it } from 'vitest'
import { judge } from './targets.js'

/** @param {string} id @param {number[]} rates */
function row(id, rates) {
  return {
    id,
    rates,
    affordable: rates,
    perSecond: { median: rates[0] ?? 0, q1: 0, q3: 0 },
    p50sMs: [1],
    p50Ms: 1,
    p99Ms: 1,
    nodeCpu: 1,
    redisCpu: 1,
    redisCpus: [1],
    coldP50Ms: 1,
    deniedShare: 0,
  }
}

/** @param {import('./results.js').Row[]} rows @returns {import('./results.js').Results} */
function resultsOf(rows) {
  return {
    setting: { node: '', redis: '', cores: 2, rounds: 1, leases: false, load: 0 },
    speed: [{ workload: 'a', inFlight: 512, rows }],
    ceiling: { counter: [100], bucket: [] },
    memory: [],
    arrivals: [],
    scaling: [],
    admissions: [],
  }
}

it('each target is held against the fastest of those it speaks of', () => {
  const targets = judge(
    resultsOf([
      row('headgate, sliding-window counter · node-redis', [90]),
      row('rate-limiter-flexible · ioredis', [30]),
      row('@fastify/rate-limit · ioredis', [45]),
      row('@upstash/ratelimit, sliding window · ioredis', [20]),
      row('rate-limit-redis (express-rate-limit) · node-redis, tuned', [100]),
    ]),
  )
  const verdicts = targets.map(({ what, against, measured, met }) => [what, against, measured, met])
  const express = 'rate-limit-redis (express-rate-limit) · node-redis, tuned'
  expect(verdicts).toEqual([
    ['(a) 512 in flight, fastest tuned peer', express, 0.9, false],
    ['(a) 512 in flight, fastest peer', '@fastify/rate-limit · ioredis', 2, true],
    ['(a) 512 in flight, processor time of Redis', express, 1, false],
  ])
})

it('nothing is said of what was not measured', () => {
  expect(judge(resultsOf([row('rate-limiter-flexible · ioredis', [30])]))).toEqual([])
})

it('one admission over the limit is one too many', () => {
  const admission = { contestant: 'headgate, token bucket · node-redis', asked: 20, limit: 10, admitted: 11 }
  const targets = judge({ ...resultsOf([]), admissions: [admission] })
  expect(targets.map(({ kind, measured, met }) => [kind, measured, met])).toEqual([['bucket', 1, false]])
})
