/**
 * Runs in a process of its own and loads the gateways: every user at the pace of the schedule, on connections that stay
 * open. It keeps nothing of an answer but its status and its time, and tells when it was itself too late.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection } from '../traffic/connection.js'
import { requestOf } from '../traffic/request.js'
import { scheduleOf } from '../traffic/schedule.js'
import { sendOnTime } from '../traffic/send.js'
import { castOf } from './cast.js'
import { faultOfRefusal, tellsQuota } from './refusal.js'

/**
 * @typedef {object} GeneratorOrder
 * @property {readonly number[]} ports
 * @property {number} users
 * @property {number} rate
 * @property {number} connections
 * @property {number} lengthMs
 * @property {string} [names] Before the number of each user: another one makes other users.
 */

/**
 * The outcome of each request, in the order of the schedule. A time is NaN where no answer came.
 *
 * @typedef {object} Traffic
 * @property {Float64Array} latencyMs
 * @property {Float64Array} lateMs
 * @property {Uint16Array} status
 * @property {Uint8Array} withQuota 1 where the answer told what is left.
 * @property {readonly string[]} faults Of refusals, the first few.
 * @property {number} faultyRefusals
 * @property {number} fewestOpen Connections, looked at once a second.
 */

const OPEN_AT_ONCE = 100
/** For the last answers, and for those of a gateway that has fallen behind. */
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
  const schedule = scheduleOf(castOf({ rate, users }).users, lengthMs)
  const count = schedule.dueMs.length
  const latencyMs = new Float64Array(count).fill(Number.NaN)
  const lateMs = new Float64Array(count).fill(Number.NaN)
  const status = new Uint16Array(count)
  const withQuota = new Uint8Array(count)
  const turns = new Uint32Array(users)
  /** @type {string[]} */
  const faults = []
  let faultyRefusals = 0
  let fewestOpen = connections
  const looking = setInterval(() => {
    fewestOpen = Math.min(fewestOpen, all.filter(({ isOpen }) => isOpen).length)
  }, 1_000)

  /** Each user has every so-many-eth connection, and takes them in turn. @param {number} user */
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
      const fault = sent.answer.status === 429 ? faultOfRefusal(sent.answer) : null
      if (fault === null) return
      faultyRefusals++
      if (faults.length < SHOWN_FAULTS) faults.push(fault)
    },
  )
  await Promise.race([sending, sleep(lengthMs + PATIENCE_MS, undefined, { ref: false })])
  clearInterval(looking)
  for (const connection of all) connection.close()
  return { latencyMs, lateMs, status, withQuota, faults, faultyRefusals, fewestOpen }
}

process.on('message', async order => {
  process.send?.(await generate(/** @type {GeneratorOrder} */ (order), () => process.send?.('began')))
})
// Nobody is left to tell.
process.on('disconnect', () => process.exit())
process.send?.('ready')
