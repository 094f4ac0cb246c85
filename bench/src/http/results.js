import { ratioOf, spreadOf } from '../report/statistics.js'
import { ENTRIES, FRAMEWORKS, idOf } from './entries.js'

/** @typedef {import('../report/statistics.js').Spread} Spread */
/** @typedef {import('./entries.js').Entry & { id: string, perSecond: Spread, ofBare: Spread, rates: number[], p50Ms: number, p99Ms: number }} Row */
/** @typedef {{ setting: { node: string, redis: string, cores: number, rounds: number, load: number }, rows: Row[] }} Results */
/** @typedef {{ what: string, wanted: number, measured: number, met: boolean }} Target */

/** @param {Map<string, import('./load-process.js').Load[]>} loads @returns {Row[]} */
export function toRows(loads) {
  /** @param {string} id */
  const ratesOf = id => (loads.get(id) ?? []).map(({ requests, seconds }) => requests / seconds)
  return ENTRIES.map(entry => {
    const id = idOf(entry)
    const bare = ratesOf(idOf({ framework: entry.framework, where: 'none', who: 'bare' }))
    const list = loads.get(id) ?? []
    return {
      ...entry,
      ...{ id, rates: ratesOf(id), perSecond: spreadOf(ratesOf(id)), ofBare: ratioOf(ratesOf(id), bare) },
      p50Ms: spreadOf(list.map(load => load.p50Ms)).median,
      p99Ms: spreadOf(list.map(load => load.p99Ms)).median,
    }
  })
}

const OF_BARE = { memory: 0.9, redis: 0.7 }

/** @param {readonly Row[]} rows @returns {Target[]} */
export function judge(rows) {
  return FRAMEWORKS.flatMap(framework =>
    /** @type {const} */ (['memory', 'redis']).flatMap(where => {
      const here = rows.filter(row => row.framework === framework && row.where === where)
      const ours = /** @type {Row} */ (here.find(row => row.who === 'headgate'))
      const peers = here.filter(row => row !== ours)
      return [
        target(`${framework}, ${where}: of the bare framework`, OF_BARE[where], ours.ofBare.median),
        ...peers.map(peer => target(`above ${peer.id}`, 1, ratioOf(ours.rates, peer.rates).median)),
      ]
    }),
  )
}

/** @param {string} what @param {number} wanted @param {number} measured @returns {Target} */
function target(what, wanted, measured) {
  return { what, wanted, measured, met: measured >= wanted }
}
