/** Writes the page of the documentation, with a section for each kind of run. */
import { formatTable } from '../report/table.js'

/**
 * The results of a run that are kept.
 *
 * @typedef {object} Kept
 * @property {string} setting
 * @property {import('./options.js').Options} options
 * @property {number} limitPerSecond
 * @property {number} abusers
 * @property {Pick<import('./figures.js').Figures, 'on' | 'off' | 'overheadP50Ms' | 'overheadP99Ms' | 'answersPerSecond' | 'late'>} figures
 * @property {import('./run.js').Cpu} cpu Cores in use, on average.
 * @property {boolean} generatorWasLate
 * @property {readonly import('./verdicts.js').Verdict[]} verdicts
 */

/** @param {readonly Kept[]} runs */
export function loadPage(runs) {
  return `# Under load

Written by \`npm run load\`. An open loop: every request is due at a time fixed beforehand and its latency is counted from that
moment, so a gateway that falls behind is shown to. Each user has a connection and a limit of its own (a token bucket and a
counter for the hour, on Redis); a few users ask for twice what they may. Every five seconds the limits are switched off or
on again (\`headgate control off\`): what they cost is the difference between slices that follow each other.

${runs.map(section).join('\n')}`
}

/** @param {Kept} run */
function section({ setting, options, limitPerSecond, abusers, figures, cpu, generatorWasLate, verdicts }) {
  const { users, rate, connections, gateways, seconds } = options
  const { on, off, late } = figures
  const part = (
    /** @type {string} */ name,
    /** @type {import('./figures.js').Part} */ { requests, refused, latency },
  ) => [
    name,
    requests.toLocaleString('en'),
    refused.toLocaleString('en'),
    ...[latency.p50Ms, latency.p90Ms, latency.p99Ms, latency.maxMs].map(value => value.toFixed(1)),
  ]
  const cores = Object.entries(cpu).map(([name, used]) => `${name} ${used.toFixed(2)}`)
  const lateness = `The generator sent 99 % within ${late.p99Ms.toFixed(1)} ms of their time${generatorWasLate ? ': **it was itself the bottleneck**, and the latencies are worse than the gateway’s' : ''}.`
  return `## ${rate.toLocaleString('en')} requests a second, ${connections.toLocaleString('en')} connections

${setting} ${users.toLocaleString('en')} users, ${abusers} of them at twice their limit of ${limitPerSecond} a second; ${gateways === 1 ? 'one gateway' : `${gateways} gateways`}; ${seconds} s.

${formatTable(
  ['', 'target', 'measured'],
  verdicts.map(({ claim, measured, isMet }) => [claim, isMet ? 'met' : 'missed', measured]),
)}

${formatTable(['', 'requests', 'refused', 'p50, ms', 'p90', 'p99', 'slowest'], [part('limits on', on), part('limits off', off)])}

The limits add ${figures.overheadP50Ms.toFixed(2)} ms to the median and ${figures.overheadP99Ms.toFixed(2)} ms to the 99th percentile. Cores in use: ${cores.join(', ')}. ${lateness}
`
}
