/**
 * Loads the gateways from its own process: every user follows the schedule, on connections that stay open. Keeps only
 * the status and time of each answer, and records how late it sent each request.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection } from '../harness/connection.js'
import { requestOf } from '../harness/http.js'
import { scheduleOf } from '../harness/schedule.js'
import { sendOnTime } from '../harness/send.js'
import { faultOfDenial, tellsQuota } from './denial.js'
import { usersOf } from './users.js'

/**
 * @typedef {object} GeneratorOrder
 * @property {readonly number[]} ports
 * @property {number} users
 * @property {number} rate
 * @property {number} connections
 * @property {number} lengthMs
 * @property {string} [names] The prefix of every user's name: another prefix makes other users.
 */

/**
 * The outcomes of all requests, in the order of the schedule. A time is NaN if no answer came.
 *
 * @typedef {object} Traffic
 * @property {Float64Array} latencyMs
 * @property {Float64Array} lateMs
 * @property {Uint16Array} status
 * @property {Uint8Array} withQuota 1 if the answer said how much is left.
 * @property {readonly string[]} faults The first few faults of denials.
 * @property {number} faultyDenials
 * @property {number} fewestOpen The fewest open connections, counted once a second.
 */

const OPEN_AT_ONCE = 100
/** How long to wait for the last answers, also from a gateway that has fallen behind. */
const PATIENCE_MS = 10_000
const SHOWN_FAULTS = 3

/** @param {GeneratorOrder} order @param {() => void} began @returns {Promise<Traffic>} */
async function generate({ ports, users, rate, connections, lengthMs, names = 'user' }, began) {
  const all = Array.from(
    { length: connections },
    (_, index) => new Connection(/** @type {number} */ (ports[index % ports.length])),
  )
  for (let first = 0; first < all.length; first += OPEN_AT_ONCE)
    await Promise.all(all.slice(first, first + OPEN_AT_ONCE).map(connection => connection.open()))

  const requests = Array.from({ length: users }, (_, user) =>
    requestOf(`${names}-${user}`, `/things/${user}`),
  )
  const schedule = scheduleOf(usersOf({ rate, users }).users, lengthMs)
  const count = schedule.dueMs.length
  const latencyMs = new Float64Array(count).fill(Number.NaN)
  const lateMs = new Float64Array(count).fill(Number.NaN)
  const status = new Uint16Array(count)
  const withQuota = new Uint8Array(count)
  const turns = new Uint32Array(users)
  /** @type {string[]} */
  const faults = []
  let faultyDenials = 0
  let fewestOpen = connections
  const looking = setInterval(() => {
    fewestOpen = Math.min(fewestOpen, all.filter(({ isOpen }) => isOpen).length)
  }, 1_000)

  /** Each user has its own share of the connections and takes them in turn. @param {number} user */
  function connectionOf(user) {
    const own = Math.floor((connections - 1 - user) / users) + 1
    const turn = /** @type {number} */ (turns[user]) % own
    turns[user] = turn + 1
    return /** @type {Connection} */ (all[user + turn * users])
  }

  began()
  const sending = sendOnTime(
    schedule,
    (user, _, done) => connectionOf(user).ask(/** @type {Buffer} */ (requests[user]), done),
    sent => {
      latencyMs[sent.request] = sent.answer.status === 0 ? Number.NaN : sent.latencyMs
      lateMs[sent.request] = sent.lateMs
      status[sent.request] = sent.answer.status
      withQuota[sent.request] = Number(tellsQuota(sent.answer.head))
      const fault = sent.answer.status === 429 ? faultOfDenial(sent.answer) : null
      if (fault === null) return
      faultyDenials++
      if (faults.length < SHOWN_FAULTS) faults.push(fault)
    },
  )
  await Promise.race([sending, sleep(lengthMs + PATIENCE_MS, undefined, { ref: false })])
  clearInterval(looking)
  for (const connection of all) connection.close()
  return { latencyMs, lateMs, status, withQuota, faults, faultyDenials, fewestOpen }
}

process.on('message', async order => {
  process.send?.(await generate(/** @type {GeneratorOrder} */ (order), () => process.send?.('began')))
})
// The parent is gone.
process.on('disconnect', () => process.exit())
process.send?.('ready')
