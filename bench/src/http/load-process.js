/**
 * Loads servers from its own process, with one request under way on each connection. It parses only enough HTTP to tell
 * one answer from the next, so that on two cores the server has one to itself.
 */
import { connect } from 'node:net'
import { latenciesOf } from '../redis/latencies.js'
import { readAnswer } from './answer.js'
import { USER_HEADER, USERS } from './rule.js'

/** @typedef {{ port: number, connections: number, seconds: number }} LoadOrder */
/** @typedef {{ requests: number, refused: number, seconds: number, p50Ms: number, p99Ms: number }} Load */

const requests = Array.from({ length: USERS }, (_, user) =>
  Buffer.from(`GET / HTTP/1.1\r\nHost: localhost\r\n${USER_HEADER}: ${user}\r\n\r\n`),
)

/** @param {LoadOrder} order @returns {Promise<Load>} */
async function load({ port, connections, seconds }) {
  /** @type {number[]} */
  const timesMs = []
  let refused = 0
  let next = 0
  const beganMs = performance.now()
  const endsMs = beganMs + seconds * 1000

  /** Sends on one connection until the time is over. @returns {Promise<void>} */
  function converse() {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      let received = ''
      let sentMs = 0
      const ask = () => {
        sentMs = performance.now()
        socket.write(/** @type {Buffer} */ (requests[next++ % USERS]))
      }
      socket.setEncoding('latin1')
      socket.on('connect', ask)
      socket.on('error', reject)
      socket.on('data', chunk => {
        received += chunk
        const answer = readAnswer(received)
        if (answer === null) return
        received = ''
        const nowMs = performance.now()
        timesMs.push(nowMs - sentMs)
        if (answer.status !== 200) refused++
        if (nowMs < endsMs) return ask()
        socket.destroy()
        resolve()
      })
    })
  }

  await Promise.all(Array.from({ length: connections }, converse))
  const elapsed = (performance.now() - beganMs) / 1000
  return { requests: timesMs.length, refused, seconds: elapsed, ...latenciesOf(timesMs) }
}

process.on('message', async order => {
  process.send?.(await load(/** @type {LoadOrder} */ (order)))
})
process.send?.('ready')
