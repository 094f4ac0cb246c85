/** Sums the demo up in words, with the figures it counted. */
import { CLIENTS, LIMIT_PER_SECOND, mostAllowed } from './cast.js'

/**
 * @typedef {object} Result
 * @property {number} seconds
 * @property {import('./tally.js').Summary} all
 * @property {import('./tally.js').Summary} frozen The requests due while Redis was frozen.
 * @property {number} frozenSeconds
 * @property {number} answeredInside How many of those were answered before it thawed.
 * @property {readonly number[]} apps Requests that each app answered.
 */

/** @param {number} value */
export function number(value) {
  return value.toLocaleString('en')
}

/**
 * Whether the demo succeeded: no request was lost, no well-behaved client denied, nobody got above the limit, and apps
 * and callers counted the same number of answers.
 *
 * @param {Result} result
 */
export function verdicts({ seconds, all, frozen, frozenSeconds, apps }) {
  // Counted by when they were due; the last of them was decided on when it was answered at the latest.
  const held = (
    /** @type {import('./tally.js').Summary} */ { clients, slowestMs },
    /** @type {number} */ time,
    /** @type {number} */ handovers,
  ) => clients.every(({ allowed }) => allowed <= mostAllowed(time + slowestMs / 1000, handovers))
  const wellBehaved = all.clients.filter((_, index) => CLIENTS[index]?.isAbusive === false)
  return {
    'every request was answered': all.total.failed === 0,
    'nobody well-behaved was denied': wellBehaved.every(({ denied }) => denied === 0),
    'the limit held': held(all, seconds, 2),
    'the limit held while Redis was frozen': held(frozen, frozenSeconds, 1),
    'the apps answered what was allowed': sum(apps) === all.total.allowed,
  }
}

/** @param {Result} result @param {import('./screen.js').Colours} colours */
export function summaryText(result, { bold, green, red }) {
  const { seconds, all, frozen, frozenSeconds, answeredInside, apps } = result
  const rows = CLIENTS.map((client, index) => callerLine(client, index, result))
  const checks = Object.entries(verdicts(result)).map(
    ([claim, isTrue]) => `  ${isTrue ? green('✓') : red('✗')} ${isTrue ? claim : `NOT TRUE: ${claim}`}`,
  )
  return [
    bold(`What happened in ${seconds} seconds`),
    '',
    `  ${number(all.total.asked)} requests: ${number(all.total.allowed)} allowed, ${number(all.total.denied)} denied with 429, ${number(all.total.failed)} lost.`,
    `  Half of all answers came within ${ms(all.p50Ms)}, 99 % within ${ms(all.p99Ms)}. The apps answered ${apps.map(number).join(' + ')} = ${number(sum(apps))}.`,
    '',
    `  ${'caller'.padEnd(14)}${'asked/s'.padStart(9)}${'got/s'.padStart(8)}   while Redis was frozen`,
    ...rows,
    '',
    `  Redis was frozen for ${frozenSeconds.toFixed(1)} s. ${number(frozen.total.asked)} requests came in that time, ${number(answeredInside)} were answered before it`,
    `  thawed, half of them within ${ms(frozen.p50Ms)}, the slowest in ${ms(frozen.slowestMs)}. Each gateway allowed its half of the limit.`,
    '',
    ...checks,
  ].join('\n')
}

/** @param {import('./cast.js').Client} client @param {number} index @param {Result} result */
function callerLine({ name }, index, { seconds, all, frozen, frozenSeconds }) {
  const rate = (/** @type {number | undefined} */ count, /** @type {number} */ time) =>
    ((count ?? 0) / time).toFixed(1)
  const [whole, outage] = [all.clients[index], frozen.clients[index]]
  return `  ${name.padEnd(14)}${rate(whole?.asked, seconds).padStart(9)}${rate(whole?.allowed, seconds).padStart(8)}   ${rate(outage?.allowed, frozenSeconds).padStart(4)}/s of ${LIMIT_PER_SECOND}`
}

/** @param {number} value */
function ms(value) {
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`
}

/** @param {readonly number[]} values */
function sum(values) {
  return values.reduce((one, other) => one + other, 0)
}
