import { connect } from 'node:net'
import { readResponse } from './http.js'

/** @typedef {{ readonly status: number, readonly head: string, readonly body: string }} Answer Status 0: there was none. */
/** @typedef {{ readonly request: Buffer, readonly done: (answer: Answer) => void, sends: number }} Asked */

const REQUEST_TIMEOUT = 'HTTP/1.1 408 '
const NONE = Object.freeze({ status: 0, head: '', body: '' })

/**
 * A connection that stays open, with one request in flight and the others waiting their turn.
 * The next request reopens a closed connection. A request that hits the close of an idle connection is sent once more,
 * as browsers do; any other lost request stays lost.
 */
export class Connection {
  #port
  /** @type {import('node:net').Socket | null} */
  #socket = null
  #received = ''
  /** Whether it was open before the request in flight was written. */
  #wasIdle = false
  /** @type {Asked | null} */
  #inFlight = null
  /** @type {Asked[]} */
  #waiting = []

  /** @param {number} port */
  constructor(port) {
    this.#port = port
  }

  get isOpen() {
    return this.#socket?.readyState === 'open'
  }

  /** Opens the connection without sending a request. @returns {Promise<void>} */
  open() {
    const socket = this.#connected()
    return new Promise((resolve, reject) => {
      socket.once('connect', resolve)
      socket.once('close', () => reject(new Error(`no connection to port ${this.#port}`)))
    })
  }

  /** @param {Buffer} request @param {(answer: Answer) => void} done Called once, whatever happens. */
  ask(request, done) {
    this.#waiting.push({ request, done, sends: 0 })
    if (this.#inFlight === null) this.#next()
  }

  close() {
    this.#socket?.destroy()
  }

  #next() {
    const asked = this.#waiting.shift() ?? null
    this.#inFlight = asked
    if (asked !== null) this.#send(asked)
  }

  /** @param {Asked} asked */
  #send(asked) {
    asked.sends++
    this.#wasIdle = this.#socket !== null
    this.#connected().write(asked.request)
  }

  #connected() {
    if (this.#socket !== null) return this.#socket
    const socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true })
    this.#socket = socket
    this.#received = ''
    socket.setEncoding('latin1')
    socket.on('data', chunk => this.#read(String(chunk)))
    // The close handler reports lost requests.
    socket.on('error', () => {})
    socket.on('close', () => {
      // We ended it, after its last answer.
      if (this.#socket !== socket) return
      this.#socket = null
      const asked = this.#inFlight
      const metIdleEnd =
        this.#wasIdle && (this.#received === '' || this.#received.startsWith(REQUEST_TIMEOUT))
      if (asked?.sends === 1 && metIdleEnd) this.#send(asked)
      else this.#answered(NONE)
    })
    return socket
  }

  /** @param {string} chunk */
  #read(chunk) {
    this.#received += chunk
    // A server sends this answer to no request before it closes an idle connection.
    if (this.#received.startsWith(REQUEST_TIMEOUT)) return
    const answer = readResponse(this.#received)
    if (answer === undefined) return
    const { status, headLength, length } = answer
    const head = this.#received.slice(0, headLength)
    const body = this.#received.slice(headLength, length)
    this.#received = this.#received.slice(length)
    if (/\r\nconnection: close/i.test(head)) {
      this.#socket?.destroy()
      this.#socket = null
    }
    this.#answered({ status, head, body })
  }

  /** @param {Answer} answer */
  #answered(answer) {
    const asked = this.#inFlight
    if (asked === null) return
    this.#inFlight = null
    asked.done(answer)
    this.#next()
  }
}
