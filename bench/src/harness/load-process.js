/** Loads a server from a process of its own, with one request in flight on each connection, until the time is over. */
import { connect } from 'node:net'
import { readResponse, requestOf } from './http.js'
import { quantile } from './stats.js'

/** @typedef {{ port: number, connections: number, seconds: number }} Order */
/** @typedef {{ requests: number, perSecond: number, p99Ms: number }} Load */

const USERS = 100
const requests = Array.from({ length: USERS }, (_, user) => requestOf(String(user), '/'))

/** @param {Order} order @returns {Promise<Load>} */
async function load({ port, connections, seconds }) {
  /** @type {number[]} */
  const timesMs = []
  let next = 0
  const beganMs = performance.now()
  const endsMs = beganMs + seconds * 1000
  /** @returns {Promise<void>} */
  const converse = () =>
    new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      let [received, sentMs] = ['', 0]
      const send = () => {
        sentMs = performance.now()
        socket.write(/** @type {Buffer} */ (requests[next++ % USERS]))
      }
      socket.setEncoding('latin1')
      socket.on('connect', send)
      socket.on('error', reject)
      socket.on('close', () => reject(new Error(`port ${port} closed a connection`)))
      socket.on('data', chunk => {
        received += chunk
        const response = readResponse(received)
        if (response === undefined) return
        const nowMs = performance.now()
        timesMs.push(nowMs - sentMs)
        if (response.status !== 200) reject(new Error(`port ${port} answered:\n${received}`))
        received = ''
        if (nowMs < endsMs) return send()
        resolve()
        socket.destroy()
      })
    })
  await Promise.all(Array.from({ length: connections }, converse))
  const elapsed = (performance.now() - beganMs) / 1000
  timesMs.sort((one, other) => one - other)
  return { requests: timesMs.length, perSecond: timesMs.length / elapsed, p99Ms: quantile(timesMs, 0.99) }
}

process.on('message', async order => {
  process.send?.(await load(/** @type {Order} */ (order)))
})
process.send?.('ready')
