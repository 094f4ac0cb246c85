/** The faults of Redis in a soak, in order. Each resolves once Redis can answer again. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { startRedis } from '../harness/redis-server.js'

const FAULT_MS = 3_000

/** Starts a Redis that can be broken and comes back on the same port. */
export async function startFaultyRedis() {
  let server = await startRedis()
  const { port, url } = server

  /** @type {readonly { name: string, happen(): Promise<void> }[]} */
  const faults = [
    {
      name: 'frozen for 3 s',
      async happen() {
        server.signal('SIGSTOP')
        await sleep(FAULT_MS)
        server.signal('SIGCONT')
      },
    },
    {
      name: 'killed, empty again after 3 s',
      async happen() {
        await server.stop()
        await sleep(FAULT_MS)
        server = await startRedis({ port })
      },
    },
    { name: 'connections cut', happen: () => send(port, 'CLIENT KILL TYPE normal') },
    { name: 'scripts flushed', happen: () => send(port, 'SCRIPT FLUSH') },
    {
      name: 'slow to answer for 3 s',
      async happen() {
        await send(port, `CLIENT PAUSE ${FAULT_MS}`)
        await sleep(FAULT_MS)
      },
    },
  ]
  return { url, faults, stop: () => server.stop() }
}

/** Sends one command without waiting for its reply, because it may close our connection. @param {number} port @param {string} command @returns {Promise<void>} */
function send(port, command) {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${command}\r\n`))
    socket.once('data', () => socket.destroy())
    socket.on('error', () => {})
    socket.on('close', () => resolve())
  })
}
