import { execFileSync } from 'node:child_process'
import { parseArgs } from 'node:util'

/**
 * @typedef {object} Options
 * @property {number} seconds The measured time, after a warm-up.
 * @property {number} rate Requests a second in all.
 * @property {number} users
 * @property {number} connections
 * @property {number} gateways Processes that share the Redis.
 * @property {string} html The file to write the report to.
 */

/** How long a connection may idle; the gateway closes it later than that. */
const USED_EVERY_SECONDS = 3.5

const RANGES = {
  seconds: [2, 3_600],
  rate: [20, 50_000],
  users: [20, 10_000],
  connections: [20, 20_000],
  gateways: [1, 16],
}

/** @param {readonly string[]} args @returns {Options} */
export function readOptions(args) {
  const text = { type: /** @type {const} */ ('string') }
  const { values } = parseArgs({
    args: [...args],
    options: { seconds: text, rate: text, users: text, connections: text, gateways: text, html: text },
  })
  /** @param {keyof typeof RANGES} name @param {number} otherwise */
  const number = (name, otherwise) => {
    const value = Number(values[name] ?? otherwise)
    const [least = 0, most = 0] = RANGES[name]
    if (!Number.isInteger(value) || value < least || value > most)
      throw new Error(`--${name}: expected a whole number from ${least} to ${most}, got ${values[name]}`)
    return value
  }
  const users = number('users', 1_000)
  const connections = Math.max(users, number('connections', users))
  checkDescriptors(connections)
  return {
    seconds: number('seconds', 60),
    // A connection stays open only if it is used now and then.
    rate: number('rate', Math.max(2_000, Math.ceil(connections / USED_EVERY_SECONDS))),
    users,
    connections,
    gateways: number('gateways', 1),
    html: values.html ?? '',
  }
}

/** @param {number} connections */
function checkDescriptors(connections) {
  const allowed = Number(execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' }))
  const needed = connections + 1_000
  if (allowed < needed)
    throw new Error(
      `${connections} connections need ${needed} open files; ulimit -n is ${allowed}: ulimit -n ${needed}`,
    )
}
