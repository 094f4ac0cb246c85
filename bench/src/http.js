/** What a limiter costs a web server: its processor time for a request, above that of the server without one. */
import { formatTable, thousands } from './harness/page.js'
import { Child, cpuMicrosOf } from './harness/processes.js'
import { startRedis } from './harness/redis-server.js'
import { interleave } from './harness/rounds.js'
import { medianOf, spreadOf } from './harness/stats.js'

/** @typedef {import('./http-servers.js').Entry} Entry */
/** @typedef {{ cpuMicros: number, perSecond: number }} Sample */

const CONNECTIONS = 64
const FULL = { rounds: 15, seconds: 0.6, warmUpSeconds: 3 }
const QUICK = { rounds: 1, seconds: 0.1, warmUpSeconds: 0.1 }
const FRAMEWORKS = /** @type {const} */ ({
  express: 'express-rate-limit',
  fastify: '@fastify/rate-limit',
  hono: 'hono-rate-limiter',
})

export const minutes = 6
export const rows = Object.keys(FRAMEWORKS)

/** @param {import('./bench.js').BenchOptions} options @returns {Promise<import('./bench.js').Sections>} */
export async function measure({ quick, only = rows, machine }) {
  const { rounds, seconds, warmUpSeconds } = quick ? QUICK : FULL
  const redis = await startRedis()
  const generator = new Child(new URL('harness/load-process.js', import.meta.url))
  /** @type {string[][]} */
  const table = []
  try {
    await generator.receive()
    for (const framework of /** @type {(keyof typeof FRAMEWORKS)[]} */ (only)) {
      /** @type {Child[]} */
      const servers = []
      try {
        const contestants = new Map()
        for (const [name, entry] of entriesOf(framework)) {
          const server = new Child(
            new URL('http-server-process.js', import.meta.url),
            JSON.stringify(entry),
            redis.url,
          )
          servers.push(server)
          const port = await server.receive()
          await generator.request({ port, connections: CONNECTIONS, seconds: warmUpSeconds })
          contestants.set(name, async () => {
            const before = cpuMicrosOf(server.pid)
            const { requests, perSecond } = await generator.request({
              port,
              connections: CONNECTIONS,
              seconds,
            })
            return { cpuMicros: (cpuMicrosOf(server.pid) - before) / requests, perSecond }
          })
        }
        /** @type {Map<string, Sample[]>} */
        const samples = await machine.cell(framework, () => interleave(contestants, rounds))
        table.push(...rowsOf(framework, samples))
      } finally {
        for (const server of servers) server.stop()
      }
    }
  } finally {
    generator.stop()
    await redis.stop()
  }
  return {
    http: formatTable({
      head: ['server', 'µs above bare', 'middle half', 'µs a request', 'requests/s'],
      rows: table,
    }),
  }
}

/** @param {keyof typeof FRAMEWORKS} framework @returns {Map<string, Entry>} */
function entriesOf(framework) {
  const usual = FRAMEWORKS[framework]
  /** @param {Entry['limiter']} limiter @param {boolean} redis @param {Entry['headers']} headers @returns {Entry} */
  const entry = (limiter, redis, headers) => ({ framework, limiter, redis, headers })
  return new Map([
    ['bare', entry('none', false, 'none')],
    [`${usual}, memory`, entry('usual', false, 'legacy')],
    ['**headgate**, memory', entry('headgate', false, 'legacy')],
    ['**headgate**, memory, no headers', entry('headgate', false, 'none')],
    [`${usual}, Redis`, entry('usual', true, 'legacy')],
    ['**headgate**, Redis', entry('headgate', true, 'legacy')],
    ['**headgate**, Redis, no headers', entry('headgate', true, 'none')],
  ])
}

/** @param {string} framework @param {ReadonlyMap<string, Sample[]>} samples */
function rowsOf(framework, samples) {
  const bare = samples.get('bare') ?? []
  return [...samples].map(([name, own]) => {
    const above = spreadOf(
      own.map(({ cpuMicros }, round) => cpuMicros - (bare[round]?.cpuMicros ?? Number.NaN)),
    )
    return [
      `${framework}, ${name}`,
      name === 'bare' ? '–' : above.median.toFixed(1),
      name === 'bare' ? '–' : `${above.low.toFixed(1)}–${above.high.toFixed(1)}`,
      medianOf(own.map(({ cpuMicros }) => cpuMicros)).toFixed(1),
      thousands(medianOf(own.map(({ perSecond }) => perSecond))),
    ]
  })
}
