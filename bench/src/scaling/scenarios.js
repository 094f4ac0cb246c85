/** Fleets to simulate, each with the bound that can be proved for it. */

/** @typedef {import('./fleet-simulation.js').Fleet} Fleet */

/**
 * @typedef {object} Scenario
 * @property {string} name
 * @property {Fleet} fleet
 * @property {number} windowUs In which admissions are counted.
 * @property {number} bound The most that may be admitted in any of them.
 * @property {string} why Of the bound.
 * @property {number} expected What one exact limiter would admit in a window, of this traffic.
 * @property {{ fromSeconds: number, toSeconds: number }} steady When that is looked at.
 */

const WINDOW_SECONDS = 10
/**
 * @param {{ slidingWindowLog: typeof import('headgate').slidingWindowLog, tokenBucket: typeof import('headgate').tokenBucket }} makers
 * @param {{ processes: number, limit: number }} size Everybody together asks for twice the limit.
 * @returns {Scenario[]}
 */
export function scenariosOf({ slidingWindowLog, tokenBucket }, { processes, limit }) {
  const perSecond = limit / WINDOW_SECONDS
  const log = slidingWindowLog({ limit, window: `${WINDOW_SECONDS}s` })
  // Twice as much, so that at 80 % of it a process still asks often enough to lease.
  const roomy = slidingWindowLog({ limit: 2 * limit, window: `${WINDOW_SECONDS}s` })
  const bucket = tokenBucket({ capacity: limit, refillPerSecond: perSecond })
  const fleet = {
    processes,
    limit: log,
    leased: false,
    traffic: [2 * perSecond],
    seconds: 2.5 * WINDOW_SECONDS,
  }
  const thirds = [perSecond * 2, perSecond * 2, perSecond * 2].map(rate => rate / 3)
  const uneven = [perSecond * 1.4, perSecond * 0.4, perSecond * 0.2]
  const base = {
    windowUs: WINDOW_SECONDS * 1e6,
    bound: limit,
    why: 'the limit',
    expected: limit,
    steady: { fromSeconds: WINDOW_SECONDS, toSeconds: 2 * WINDOW_SECONDS },
  }
  const outage = {
    fleet: { ...fleet, seconds: 36, outage: { fromSeconds: 12, toSeconds: 34 } },
    bound: 2 * limit,
    why: 'twice the limit where Redis and the shares take over from each other',
  }
  return [
    { ...base, name: 'log, every request asks Redis', fleet },
    { ...base, name: 'log, leased', fleet: { ...fleet, leased: true } },
    {
      ...base,
      name: 'log, leased, at 80 % of the limit',
      fleet: { ...fleet, leased: true, limit: roomy, traffic: [1.6 * perSecond] },
      bound: 2 * limit,
      expected: 1.6 * limit,
    },
    {
      ...base,
      name: 'token bucket, leased',
      fleet: { ...fleet, limit: bucket, leased: true },
      bound: limit + perSecond * WINDOW_SECONDS,
      why: 'capacity + rate × time',
    },
    { ...base, name: '3 regions with a third each, even traffic', fleet: { ...fleet, traffic: thirds } },
    { ...base, name: '3 regions with a third each, traffic 70/20/10', fleet: { ...fleet, traffic: uneven } },
    {
      ...base,
      name: 'log, Redis silent: the window after it was lost',
      ...outage,
      steady: { fromSeconds: 12, toSeconds: 12 + WINDOW_SECONDS },
    },
    {
      ...base,
      name: 'log, Redis silent: the windows after that',
      ...outage,
      steady: { fromSeconds: 13 + WINDOW_SECONDS, toSeconds: 13 + 2 * WINDOW_SECONDS },
    },
  ]
}
