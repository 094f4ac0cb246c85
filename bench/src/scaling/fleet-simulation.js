/**
 * A fleet in virtual time: the real limiter, remote store, leases and local shares of every process, and the engine itself in
 * place of each region's Redis. Nothing is measured here but who was admitted when.
 */
import { createRandom } from '../sequences.js'

/** @typedef {import('../../../packages/headgate/test/simulation/virtual-time.ts').VirtualTime} VirtualTime */
/** @typedef {import('../../../packages/headgate/src/algorithms/algorithm.ts').Limit} Limit */

/**
 * @typedef {object} Fleet
 * @property {number} processes In all, spread over the regions.
 * @property {Limit} limit One key, that everybody asks for.
 * @property {boolean} leased
 * @property {readonly number[]} traffic Requests a second in each region.
 * @property {number} seconds
 * @property {{ fromSeconds: number, toSeconds: number }} [outage] In which no Redis answers.
 */

/** The library's parts, which are TypeScript. @typedef {Awaited<ReturnType<typeof loadParts>>} Parts */
export async function loadParts() {
  const source = '../../../packages/headgate/src'
  const [remote, options, limiter, memory, time] = await Promise.all([
    import(`${source}/store/remote/remote-store.ts`),
    import(`${source}/store/remote/remote-options.ts`),
    import(`${source}/limiter/limiter.ts`),
    import(`${source}/store/memory/memory-store.ts`),
    import('../../../packages/headgate/test/simulation/virtual-time.ts'),
  ])
  return { ...remote, ...options, ...limiter, ...memory, ...time }
}

/** One way, to the nearest Redis. */
const LATENCY_US = 400
/** The longest there is for the windows that are simulated: a twentieth of ten seconds. */
const LEASE_TTL = '500ms'
const SUBJECT = 'tenant:acme'
/** As in `redisStore`. */
const DENIED_SUBJECTS = 10_000
const SILENT = { info() {}, warn() {}, error() {} }

/**
 * @param {Parts} parts
 * @param {Fleet} fleet
 * @returns {Promise<{ admittedUs: Float64Array, requests: number, calls: number }>} When each request was admitted, in order.
 */
export async function simulateFleet(parts, { processes, limit, leased, traffic, seconds, outage }) {
  const time = /** @type {VirtualTime} */ (parts.createVirtualTime())
  const random = createRandom(processes + traffic.length)
  /** @type {number[]} */
  const admitted = []
  const count = { requests: 0, calls: 0 }
  const policies = {
    api: leased ? { limits: limit, lease: { max: Math.ceil(limit.limit / 20), ttl: LEASE_TTL } } : limit,
  }
  const isOut = () =>
    outage !== undefined && time.nowUs() >= outage.fromSeconds * 1e6 && time.nowUs() < outage.toSeconds * 1e6

  for (const [region, perSecond] of traffic.entries()) {
    const redis = parts.memoryStore({ clock: { nowUs: time.nowUs, unixMs: () => 0 } })
    const members = Math.round(processes / traffic.length)
    const share = traffic.length === 1 ? null : { part: 1, of: traffic.length }
    for (let member = 0; member < members; member++) {
      const settings = {
        ...parts.parseRemoteOptions({ processes: members, logger: SILENT }),
        deniedSubjects: DENIED_SUBJECTS,
        share,
      }
      const world = worldOf(time, createRandom(region * processes + member + 1))
      const store = new parts.RemoteStore(remoteOf(redis, time, isOut, count), settings, world)
      const limiter = parts.createLimiter({ store, clock: world.clock, policies })
      const gapUs = () => (-Math.log(1 - random()) * 1e6 * members) / perSecond
      const ask = async () => {
        time.after(gapUs(), 'request', null, ask)
        count.requests++
        const { allowed } = await limiter.check(SUBJECT, { policy: 'api' })
        if (allowed) admitted.push(time.nowUs())
      }
      time.after(gapUs(), 'request', null, ask)
    }
  }
  await time.runUntil(seconds * 1e6)
  return { admittedUs: Float64Array.from(admitted), ...count }
}

/** @param {VirtualTime} time @param {() => number} random */
function worldOf(time, random) {
  const wait = (/** @type {number} */ ms, /** @type {() => void} */ work) =>
    time.after(ms * 1000, 'timer', null, work)
  return {
    clock: { nowUs: time.nowUs, unixMs: () => Math.floor(time.nowUs() / 1000) },
    timers: {
      after: wait,
      inBackground: wait,
      afterThisTurn: (/** @type {() => void} */ work) => void time.after(0, 'turn', null, work),
    },
    random,
  }
}

/**
 * A Redis at some distance. While it is out, nothing comes back.
 *
 * @param {any} redis @param {VirtualTime} time @param {() => boolean} isOut @param {{ calls: number }} count
 */
function remoteOf(redis, time, isOut, count) {
  /** @template T @param {() => T} work @returns {Promise<T>} */
  const call = work =>
    new Promise(resolve => {
      count.calls++
      time.after(LATENCY_US, 'message', null, () => {
        if (isOut()) return
        const answer = work()
        time.after(LATENCY_US, 'message', null, () => resolve(answer))
      })
    })
  return {
    source: 'redis',
    isSplit: false,
    batchKeyOf: () => 0,
    nodeOf: () => '',
    nameOf: () => 'Redis',
    ask: (/** @type {readonly any[]} */ checks) =>
      call(() =>
        checks.map(check => {
          const copy = check.again()
          redis.charge(copy, check.asked, time.nowUs())
          return copy
        }),
      ),
    read(/** @type {readonly any[]} */ reply, /** @type {readonly any[]} */ checks) {
      for (const [index, check] of checks.entries()) check.copyFrom(reply[index])
      return null
    },
    refund: (/** @type {unknown} */ refunds) => call(() => redis.refund(refunds)),
    renew: (/** @type {unknown} */ renewals) => call(() => redis.renew(renewals)),
    reset: (/** @type {unknown} */ checks) => call(() => redis.reset(checks)),
    heartbeat: async () => ({ live: 1, recent: 1, rewinds: 0 }),
    close: async () => {},
  }
}
