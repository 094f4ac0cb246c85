/** Loads a server in one of two ways: by a number of callers with one request each, or at a fixed rate of requests. */
import { connect } from 'node:net'
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import { METHOD } from '@headgate/server/dist/envoy/grpc/wire-format.js'
import { readAnswer } from '../http/answer.js'

/** @typedef {{ requests: number, timesMs: number[] }} Load */

/** @param {number} port @param {string} request @param {{ callers: number, seconds: number }} plan @returns {Promise<Load>} */
export async function loadHttp(port, request, { callers, seconds }) {
  /** @type {number[]} */
  const timesMs = []
  const bytes = Buffer.from(request)
  const endsMs = performance.now() + seconds * 1000
  /** @returns {Promise<void>} */
  const converse = () =>
    new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      let received = ''
      let sentMs = 0
      const ask = () => {
        sentMs = performance.now()
        socket.write(bytes)
      }
      socket.setEncoding('latin1')
      socket.on('connect', ask)
      socket.on('error', reject)
      socket.on('data', chunk => {
        received += chunk
        const answer = readAnswer(received)
        if (answer === null) return
        if (answer.status !== 200) return reject(new Error(`expected 200; got ${received}`))
        received = ''
        const nowMs = performance.now()
        timesMs.push(nowMs - sentMs)
        if (nowMs < endsMs) return ask()
        socket.destroy()
        resolve()
      })
    })
  await Promise.all(Array.from({ length: callers }, converse))
  return { requests: timesMs.length, timesMs }
}

/** @param {number} port */
export function grpcCaller(port) {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
  /** @type {(message: Buffer) => Promise<void>} */
  const ask = message =>
    new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        METHOD.path,
        b => b,
        b => b,
        message,
        new Metadata(),
        {},
        error => (error === null ? resolve() : reject(error)),
      )
    })
  return { ask, close: () => client.close() }
}

/** @param {readonly string[]} keys @param {string} value */
export function rateLimitRequest(keys, value) {
  const descriptors = keys.map(key => ({ entries: [{ key: Buffer.from(key), value: Buffer.from(value) }] }))
  return METHOD.requestSerialize({ domain: Buffer.from('edge'), descriptors })
}

/** @param {number} port @param {readonly Buffer[]} messages @param {{ callers: number, seconds: number }} plan @returns {Promise<Load>} */
export async function loadGrpc(port, messages, { callers, seconds }) {
  const { ask, close } = grpcCaller(port)
  /** @type {number[]} */
  const timesMs = []
  const endsMs = performance.now() + seconds * 1000
  let next = 0
  const converse = async () => {
    while (performance.now() < endsMs) {
      const sentMs = performance.now()
      await ask(/** @type {Buffer} */ (messages[next++ % messages.length]))
      timesMs.push(performance.now() - sentMs)
    }
  }
  await Promise.all(Array.from({ length: callers }, converse))
  close()
  return { requests: timesMs.length, timesMs }
}

/**
 * Sends requests at a rate, without waiting for earlier answers. Latency counts from when a request was due.
 * @param {(message: Buffer) => Promise<void>} ask @param {readonly Buffer[]} messages
 * @param {{ perSecond: number, seconds: number }} plan @returns {Promise<number[]>}
 */
export async function openLoop(ask, messages, { perSecond, seconds }) {
  /** @type {Promise<number>[]} */
  const all = []
  const beganMs = performance.now()
  for (let sent = 0; sent < perSecond * seconds; ) {
    const due = Math.min(
      perSecond * seconds,
      Math.floor(((performance.now() - beganMs) * perSecond) / 1000) + 1,
    )
    for (; sent < due; sent++) {
      const dueMs = beganMs + (sent * 1000) / perSecond
      const message = /** @type {Buffer} */ (messages[sent % messages.length])
      all.push(ask(message).then(() => performance.now() - dueMs))
    }
    await new Promise(resolve => setImmediate(resolve))
  }
  return Promise.all(all)
}
