import { ratioOf, spreadOf } from '../report/statistics.js'
import { baseOf, ENTRIES, idOf } from './entries.js'

/** @typedef {import('../report/statistics.js').Spread} Spread */
/** @typedef {import('./entries.js').Entry & { id: string, perSecond: Spread, cpuUs: number[], shares: number[], share: Spread, p50Ms: number, p99Ms: number }} Row `share` is what is left of the framework: its processor time a request, of ours. */
/** @typedef {{ setting: { node: string, redis: string, cores: number, rounds: number, load: number }, rows: Row[] }} Results */
/** @typedef {{ what: string, wanted: number, measured: number, met: boolean }} Target */

/** @param {Map<string, import('./rounds.js').Load[]>} loads @returns {Row[]} */
export function toRows(loads) {
  return ENTRIES.filter(entry => loads.has(idOf(entry))).map(entry => {
    const id = idOf(entry)
    const list = loads.get(id) ?? []
    const cpuUs = list.map(load => load.cpuUs)
    const baseCpuUs = list.map(load => load.baseCpuUs)
    return {
      ...entry,
      id,
      cpuUs,
      shares: baseCpuUs.map((us, round) => us / Number(cpuUs[round])),
      share: ratioOf(baseCpuUs, cpuUs),
      perSecond: spreadOf(list.map(({ requests, seconds }) => requests / seconds)),
      p50Ms: spreadOf(list.map(load => load.p50Ms)).median,
      p99Ms: spreadOf(list.map(load => load.p99Ms)).median,
    }
  })
}

const OF_EXPRESS = { none: 0.9, ietf: 0.9, legacy: 0.9 }
const OF_QUICK = { none: 0.95, ietf: 0.85, legacy: 0.75 }
const EXACT_ON_REDIS = 0.6

/** Returns the share of a framework's speed that should be left; null for a row without a target. @param {Row} row @returns {number | null} */
function wantedOf({ framework, where, who, style }) {
  if (who !== 'headgate' || style === undefined) return null
  if (framework === 'express') return where === 'redis' ? EXACT_ON_REDIS : OF_EXPRESS[style]
  if (framework !== 'fastify' && framework !== 'hono') return null
  return where === 'redis' ? EXACT_ON_REDIS : OF_QUICK[style]
}

/** @param {readonly Row[]} rows @returns {Target[]} */
export function judge(rows) {
  return rows.flatMap(row => {
    const wanted = wantedOf(row)
    if (wanted === null) return []
    const peers = row.style === 'legacy' ? rows.filter(other => isPeer(other, row)) : []
    return [
      target(`${row.id}: of ${idOf(baseOf(row))}`, wanted, row.share.median),
      ...peers.map(peer => target(`${row.id}: above ${peer.id}`, 1, ratioOf(row.shares, peer.shares).median)),
    ]
  })
}

/** Whether another library does the same job in the same framework. @param {Row} other @param {Row} row */
function isPeer(other, row) {
  const isOther = other.who.startsWith('usual') || other.who === 'flexible'
  return isOther && other.framework === row.framework && other.where === row.where
}

/** @param {string} what @param {number} wanted @param {number} measured @returns {Target} */
function target(what, wanted, measured) {
  return { what, wanted, measured, met: measured >= wanted }
}
