/** Shows the demo: on a terminal one picture that is redrawn, elsewhere a line every second. */
import { CLIENTS, LIMIT_PER_SECOND } from './cast.js'
import { number } from './summary.js'

const BAR = 30
const NAME = 14
/** The rate of the busiest client, which fills the bar. */
const LOUDEST = Math.max(...CLIENTS.map(({ perSecond }) => perSecond))

/**
 * @typedef {object} Moment
 * @property {number} second Since the traffic began.
 * @property {number} seconds Of the whole demo.
 * @property {'answering' | 'frozen' | 'thawed'} redis
 * @property {import('./tally.js').Summary} now The last second.
 * @property {import('./tally.js').Summary} all
 */

/** @param {NodeJS.WriteStream} stream @param {Colours} colours @param {string} dashboardUrl */
export function createScreen(stream, colours, dashboardUrl) {
  let drawn = 0
  return {
    /** @param {Moment} moment */
    show(moment) {
      const lines = picture(moment, colours, dashboardUrl)
      stream.write(
        `${drawn > 0 ? `\x1b[${drawn}A` : '\x1b[?25l'}${lines.map(line => `\x1b[2K${line}\n`).join('')}`,
      )
      drawn = lines.length
    },
    end() {
      stream.write('\x1b[?25h')
    },
  }
}

/** @param {Moment} moment @param {Colours} colours @param {string} dashboardUrl @returns {string[]} */
function picture({ second, seconds, redis, now, all }, colours, dashboardUrl) {
  const { bold, dim } = colours
  const { asked, failed } = all.total
  return [
    `  ${bold('dashboard')}  ${colours.cyan(dashboardUrl)}`,
    `  ${bold('rule')}       every caller has ${LIMIT_PER_SECOND} requests a second, at both gateways together`,
    '',
    `  ${redisWords(redis, colours)}`,
    `  ${progressBar(second / seconds)} ${dim(`${Math.min(second, seconds).toFixed(0)} of ${seconds} s`)}`,
    '',
    dim(
      `  ${'caller'.padEnd(NAME)}${'asks/s'.padStart(8)}${'gets/s'.padStart(8)}   █ allowed  ░ denied with 429`,
    ),
    ...CLIENTS.map((client, index) => clientLine(client, now.clients[index], colours)),
    '',
    `  ${number(now.total.asked)} answers in the last second, 99 % within ${now.p99Ms.toFixed(0)} ms; ${number(asked)} in all, ${failed === 0 ? 'none' : colours.red(number(failed))} lost`,
  ]
}

/** @param {import('./cast.js').Client} client @param {import('./tally.js').Counts | undefined} counts @param {Colours} colours */
function clientLine({ name, isAbusive }, counts, { green, red, bold }) {
  const { asked = 0, allowed = 0, denied = 0 } = counts ?? {}
  const cells = (/** @type {number} */ count) => Math.min(BAR, Math.ceil((count / LOUDEST) * BAR))
  const bar = green('█'.repeat(cells(allowed))) + red('░'.repeat(cells(denied)))
  const label = name.padEnd(NAME)
  return `  ${isAbusive ? bold(label) : label}${String(asked).padStart(8)}${String(allowed).padStart(8)}   ${bar}`
}

/** @param {Moment['redis']} redis @param {Colours} colours */
function redisWords(redis, { green, yellow, bold }) {
  if (redis === 'frozen')
    return yellow(bold('❚❚ Redis is frozen: each gateway decides by itself, at its share'))
  const words = redis === 'answering' ? 'Redis answers' : 'Redis answers again: the gateways share one count'
  return green(`● ${words}`)
}

/** @param {number} share */
function progressBar(share) {
  const done = Math.round(Math.min(1, share) * BAR)
  return `${'━'.repeat(done)}${'╌'.repeat(BAR - done)}`
}

/** @param {NodeJS.WriteStream} stream */
export function createPlainLines(stream) {
  let lastSecond = 0
  return {
    /** @param {Moment} moment */
    show(moment) {
      const second = Math.floor(moment.second)
      if (second === lastSecond) return
      lastSecond = second
      stream.write(`${line(second, moment)}\n`)
    },
    end() {},
  }
}

/** @param {number} second @param {Moment} moment */
function line(second, { redis, now }) {
  const callers = CLIENTS.map(({ name }, index) => {
    const { allowed = 0, asked = 0 } = now.clients[index] ?? {}
    return `${name} ${allowed}/${asked}`
  })
  const state = redis === 'frozen' ? 'Redis FROZEN ' : 'Redis answers'
  const answers = `${number(now.total.asked)} answers, 99 % within ${now.p99Ms.toFixed(0)} ms`
  return `${String(second).padStart(3)} s  ${state}  ${answers}; allowed: ${callers.join(', ')}`
}

/** @typedef {Record<'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan', (text: string) => string>} Colours */

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 }

/** @param {NodeJS.WriteStream} stream @returns {Colours} */
export function coloursFor(stream) {
  const isColoured = stream.isTTY === true && stream.hasColors?.() === true && !process.env.NO_COLOR
  /** @param {number} code */
  const paint = code => (/** @type {string} */ text) => (isColoured ? `\x1b[${code}m${text}\x1b[0m` : text)
  const entries = Object.entries(CODES).map(([name, code]) => [name, paint(code)])
  return /** @type {Colours} */ (Object.fromEntries(entries))
}
