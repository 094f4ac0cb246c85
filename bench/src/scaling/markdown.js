import { formatRate, formatTable } from '../report/table.js'

/** @typedef {import('../redis/scaling.js').Scale} Scale */
/** @typedef {import('./simulate.js').Simulated} Simulated */
/** @typedef {{ setting: string, order: { rounds: number, seconds: number }, primaries: readonly Scale[], hot: readonly Scale[], leased: readonly Scale[], fleet: readonly Simulated[] | null, processes: number }} Results */

/** @param {Results} results */
export function scalingPage(results) {
  return `# How it scales, measured

Written by \`npm run bench:scaling\`. ${results.setting}

[What this means for sizing](../guide/how-far-does-it-go.md).
${results.primaries.length === 0 ? '' : throughputSection(results)}${results.fleet === null ? '' : fleetSection(results.fleet, results.processes)}`
}

/** @param {Results} results */
function throughputSection({ order, primaries, hot, leased }) {
  return `
With more processes and servers than cores, decisions per second by the clock say little. So decisions are also counted by the processor
time of either side: what one core of Redis, or of Node, would decide if it did nothing else.
Medians of ${order.rounds} rounds of ${order.seconds} s.

## More processes, more primaries

Sliding-window counter on 100,000 keys, 512 requests in flight in each process. On a cluster only checks of the same slot share a call,
so nearly every check is its own call.

${scaleTable(primaries)}

## One hot key

One key that everybody asks for, on one server, with 512 requests in flight in each process.

${scaleTable([...hot.map(scale => ({ ...scale, name: 'every batch asks Redis' })), ...leased.map(scale => ({ ...scale, name: 'leased' }))])}
`
}

/** @param {readonly (Scale & { name?: string })[]} scales */
function scaleTable(scales) {
  return formatTable(
    ['Redis', 'processes', 'decisions/s', 'per second of Redis’ processor', 'per second of Node’s'],
    scales.map(({ name, cluster, primaries, processes, perSecond, perRedisSecond, perNodeSecond }) => [
      name ?? (cluster ? `cluster of ${primaries}` : 'one server'),
      String(processes),
      ...[perSecond, perRedisSecond, perNodeSecond].map(({ median }) => formatRate(median)),
    ]),
  )
}

/** @param {readonly Simulated[]} fleet @param {number} processes */
function fleetSection(fleet, processes) {
  const number = (/** @type {number} */ value) => Math.round(value).toLocaleString('en')
  return `
## ${number(processes)} processes, simulated

This runs the shipped limiter, leases and local shares of every process in virtual time, with the engine instead of Redis, 0.4 ms away in
each direction. There is one key, windows last 10 s, and twice the limit is asked for unless a row says otherwise. *Most* is the most admitted in any
window, wherever it begins; *over* is the part beyond the bound; *under* is how much less was admitted than by one exact limiter.

${formatTable(
  ['', 'most', 'bound', 'over', 'under', 'calls a request'],
  fleet.map(({ name, most, bound, admitted, expected, requests, calls }) => [
    name,
    number(most),
    number(bound),
    number(Math.max(0, most - bound)),
    `${(Math.max(0, 1 - admitted / expected) * 100).toFixed(1)} %`,
    (calls / requests).toFixed(2),
  ]),
)}

${boundsInWords(fleet)}
`
}

/** Why bounds are not the limit. @param {readonly Simulated[]} fleet */
function boundsInWords(fleet) {
  const reasons = new Set(fleet.map(({ why }) => why).filter(why => why !== 'the limit'))
  return [...reasons]
    .map(reason => {
      const names = fleet.filter(({ why }) => why === reason).map(({ name }) => `“${name}”`)
      return `The bound of ${names.join(' and ')} is ${reason}.`
    })
    .join('\n')
}
