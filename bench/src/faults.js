/** The same faults of Redis for Headgate and its peers, each set up for a failing Redis as its manual advises. */
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { LIMITERS } from './faults-limiters.js'
import { formatTable } from './harness/page.js'
import { startRedis } from './harness/redis-server.js'
import { quantile } from './harness/stats.js'

/** @typedef {import('./harness/redis-server.js').RedisServer} RedisServer */
/** @typedef {Awaited<ReturnType<typeof startProxy>>} Proxy */
/** @typedef {{ cause: () => void | Promise<void>, lift: () => void | Promise<void> }} Fault */
/** @typedef {{ sentMs: number, doneMs: number, admitted: boolean, byRedis: boolean, failed: boolean }} Request */

const RULE = { limit: 50, windowSeconds: 60 }
const SUBJECTS = 50
const PER_SECOND = 1_000
const FULL = { warmUpMs: 1_000, faultMs: 5_000, afterMs: 4_000 }
const QUICK = { warmUpMs: 300, faultMs: 500, afterMs: 700 }

/** @type {Readonly<Record<string, (server: RedisServer, proxy: Proxy, replaced: RedisServer[]) => Fault>>} */
const FAULTS = {
  'frozen (SIGSTOP)': server => ({
    cause: () => server.signal('SIGSTOP'),
    lift: () => server.signal('SIGCONT'),
  }),
  'killed, restarted empty': (server, _, replaced) => ({
    cause: () => server.stop(),
    lift: async () => void replaced.push(await startRedis({ port: server.port })),
  }),
  'half-open': (_, proxy) => ({
    cause: () => proxy.setDelay(Number.POSITIVE_INFINITY),
    lift: () => proxy.setDelay(0),
  }),
  'slow: 200 ms': (_, proxy) => ({ cause: () => proxy.setDelay(100), lift: () => proxy.setDelay(0) }),
}

/** What a limiter let go unhandled would end an app's process. */
let unhandled = 0

export const minutes = 3
export const rows = Object.keys(FAULTS)

/** @param {import('./bench.js').BenchOptions} options @returns {Promise<import('./bench.js').Sections>} */
export async function measure({ quick, only = rows, machine }) {
  const times = quick ? QUICK : FULL
  process.on('unhandledRejection', () => void unhandled++)
  // Libraries report every failed request there.
  console.warn = console.error = () => {}
  /** @type {string[][]} */
  const table = []
  for (const fault of only) {
    const faultOf = FAULTS[fault]
    if (faultOf === undefined) continue
    for (const [name, open] of Object.entries(LIMITERS)) {
      const figures = await machine.cell(`${fault}: ${name}`, async () => {
        const server = await startRedis()
        const proxy = await startProxy(server.port)
        const limiter = await open(proxy.port, RULE)
        /** @type {RedisServer[]} */
        const replaced = []
        try {
          return await throughFault(limiter.check, faultOf(server, proxy, replaced), times)
        } finally {
          await limiter.close()
          proxy.close()
          for (const each of [server, ...replaced]) await each.stop()
        }
      })
      table.push([fault, name, ...figures])
    }
  }
  const head = [
    'fault',
    'limiter',
    'p99',
    'longest',
    'errors',
    `admitted, of ${RULE.limit * SUBJECTS}`,
    'back on Redis',
  ]
  const frozen = table
    .filter(([fault]) => fault === rows[0])
    .map(([, name = '', p99 = '', longest = '']) => [name, p99, longest])
  return {
    faults: formatTable({ head, rows: table }),
    'faults-short': formatTable({ head: ['Redis frozen for 5 s', 'p99', 'longest'], rows: frozen }),
  }
}

/** Sends requests at a steady rate before, during and after a fault, whether or not earlier ones were answered. @param {(subject: string) => Promise<import('./faults-limiters.js').Outcome>} check @param {Fault} fault @param {typeof FULL} times */
async function throughFault(check, fault, { warmUpMs, faultMs, afterMs }) {
  /** @type {Request[]} */
  const requests = []
  const unhandledBefore = unhandled
  /** @param {string} subject */
  const send = async subject => {
    const request = {
      sentMs: performance.now(),
      doneMs: Number.POSITIVE_INFINITY,
      admitted: false,
      byRedis: false,
      failed: true,
    }
    requests.push(request)
    try {
      Object.assign(request, await check(subject), { failed: false })
    } catch {
      // It counts as failed.
    }
    request.doneMs = performance.now()
  }
  const startMs = performance.now()
  let isSending = true
  const sending = (async () => {
    while (isSending) {
      const due = ((performance.now() - startMs) / 1000) * PER_SECOND
      while (requests.length < due) void send(`caller-${requests.length % SUBJECTS}`)
      await sleep(1)
    }
  })()
  await sleep(warmUpMs)
  const causedMs = performance.now()
  await fault.cause()
  await sleep(faultMs)
  const liftingMs = performance.now()
  await fault.lift()
  const liftedMs = performance.now()
  await sleep(afterMs)
  isSending = false
  await sending
  await sleep(500)
  const endMs = performance.now()
  const tookMs = requests
    .filter(({ sentMs }) => sentMs >= causedMs && sentMs < liftingMs)
    .map(({ sentMs, doneMs }) => Math.min(doneMs, endMs) - sentMs)
    .sort((one, other) => one - other)
  const back = requests.find(({ sentMs, byRedis, failed }) => sentMs >= liftedMs && byRedis && !failed)
  return [
    ms(quantile(tookMs, 0.99)),
    ms(tookMs.at(-1) ?? Number.NaN),
    String(requests.filter(({ failed }) => failed).length + unhandled - unhandledBefore),
    String(requests.filter(({ admitted }) => admitted).length),
    back === undefined ? `not in ${afterMs / 1000} s` : ms(back.doneMs - liftedMs),
  ]
}

/** A TCP proxy that can swallow or delay what passes through it, without closing anything. @param {number} targetPort */
async function startProxy(targetPort) {
  let delayMs = 0
  /** @type {Set<import('node:net').Socket>} */
  const sockets = new Set()
  const server = createServer(client => {
    const target = connect(targetPort, '127.0.0.1')
    for (const [from, to] of /** @type {const} */ ([
      [client, target],
      [target, client],
    ])) {
      sockets.add(from)
      from.setNoDelay(true)
      from.on('error', () => {})
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
      let sent = Promise.resolve()
      from.on('data', chunk => {
        if (delayMs === Number.POSITIVE_INFINITY) return
        const dueMs = performance.now() + delayMs
        // One after the other, also when the delay changes.
        sent = sent
          .then(() => (dueMs > performance.now() ? sleep(dueMs - performance.now()) : undefined))
          .then(() => void to.write(chunk))
      })
    }
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  return {
    port: /** @type {import('node:net').AddressInfo} */ (server.address()).port,
    /** @param {number} ms Infinite: nothing passes. */
    setDelay(ms) {
      delayMs = ms
    },
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

/** @param {number} value */
function ms(value) {
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`
}
