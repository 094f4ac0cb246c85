/** Shows the demo without a terminal: prints a line every second, for logs. */
import { CLIENTS } from './cast.js'
import { number } from './summary.js'

/** @param {NodeJS.WriteStream} stream */
export function createPlainLines(stream) {
  let lastSecond = 0
  return {
    /** @param {import('./screen.js').Moment} moment */
    show(moment) {
      const second = Math.floor(moment.second)
      if (second === lastSecond) return
      lastSecond = second
      stream.write(`${line(second, moment)}\n`)
    },
    end() {},
  }
}

/** @param {number} second @param {import('./screen.js').Moment} moment */
function line(second, { redis, now }) {
  const callers = CLIENTS.map(({ name }, index) => {
    const { allowed = 0, asked = 0 } = now.clients[index] ?? {}
    return `${name} ${allowed}/${asked}`
  })
  const state = redis === 'frozen' ? 'Redis FROZEN ' : 'Redis answers'
  const answers = `${number(now.total.asked)} answers, 99 % within ${now.p99Ms.toFixed(0)} ms`
  return `${String(second).padStart(3)} s  ${state}  ${answers}; let through: ${callers.join(', ')}`
}
