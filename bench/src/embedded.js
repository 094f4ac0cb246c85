/** Decisions in the memory of one process, ours beside other libraries, each in a process of its own. */
import { FLOOR, LIMITERS, OURS } from './embedded-limiters.js'
import { formatTable, thousands } from './harness/page.js'
import { Child } from './harness/processes.js'
import { interleave } from './harness/rounds.js'
import { medianOf, ratioOf } from './harness/stats.js'

const FULL = { rounds: 15, count: 300_000, keys: 500_000 }
const QUICK = { rounds: 1, count: 20_000, keys: 20_000 }
const WORKLOADS = /** @type {const} */ ({ a: '100,000 keys', b: '30 % denied' })

export const minutes = 3
export const rows = Object.keys(LIMITERS)

/** @param {import('./bench.js').BenchOptions} options @returns {Promise<import('./bench.js').Sections>} */
export async function measure({ quick, only, machine }) {
  const { rounds, count, keys } = quick ? QUICK : FULL
  const names = rows.filter(name => only === undefined || only.includes(name) || !OURS.includes(name))
  /** @param {string} name */
  const start = async name => {
    const child = new Child(new URL('embedded-process.js', import.meta.url), name)
    await child.receive()
    return child
  }
  /** @type {Map<string, Child>} */
  const children = new Map()
  /** @type {Map<string, number>} */
  const bytes = new Map()
  /** @type {Map<string, Map<string, number[]>>} */
  const nanos = new Map()
  try {
    for (const name of names) {
      const child = await start(name)
      bytes.set(name, await child.request({ workload: 'memory', count: keys }))
      child.stop()
      children.set(name, await start(name))
    }
    for (const [workload, title] of Object.entries(WORKLOADS)) {
      const contestants = new Map(
        [...children].map(([name, child]) => [
          name,
          () => /** @type {Promise<number>} */ (child.request({ workload, count })),
        ]),
      )
      await interleave(contestants, 2)
      nanos.set(workload, await machine.cell(`embedded, ${title}`, () => interleave(contestants, rounds)))
    }
  } finally {
    for (const child of children.values()) child.stop()
  }
  const head = Object.values(WORKLOADS).flatMap(title => [`${title}, decisions/s`, '× the fastest peer'])
  return {
    embedded: formatTable({
      head: ['in memory', ...head, 'bytes a key'],
      rows: names.map(name => [
        OURS.includes(name) ? `**headgate, ${name}**` : name,
        ...Object.keys(WORKLOADS).flatMap(workload => figuresOf(nanos.get(workload) ?? new Map(), name)),
        thousands(bytes.get(name) ?? Number.NaN),
      ]),
    }),
  }
}

/** @param {ReadonlyMap<string, number[]>} nanos @param {string} name */
function figuresOf(nanos, name) {
  const own = nanos.get(name) ?? []
  const peers = [...nanos.keys()].filter(other => !OURS.includes(other) && other !== FLOOR)
  // The fewest nanoseconds are the highest speed.
  const fastest = own.map((_, round) =>
    Math.min(...peers.map(peer => nanos.get(peer)?.[round] ?? Number.NaN)),
  )
  const { median, low, high } = ratioOf(fastest, own)
  return [thousands(1e9 / medianOf(own)), `${median.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`]
}
