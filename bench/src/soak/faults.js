/** The Redis faults of a soak, in order. Each resolves once Redis can answer again. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { startServer } from '../redis/server.js'

const FAULT_MS = 3_000

/** A Redis that can be broken and restarted on the same port. */
export async function startFaultyRedis() {
  let server = await startServer()
  const { port, url } = server

  /** @type {readonly { name: string, happen(): Promise<void> }[]} */
  const faults = [
    {
      name: 'frozen for 3 s',
      async happen() {
        process.kill(server.pid, 'SIGSTOP')
        await sleep(FAULT_MS)
        process.kill(server.pid, 'SIGCONT')
      },
    },
    {
      name: 'killed, empty again after 3 s',
      async happen() {
        await server.stop()
        await sleep(FAULT_MS)
        server = await startServer([], port)
      },
    },
    { name: 'connections cut', happen: () => tell(port, 'CLIENT KILL TYPE normal') },
    { name: 'scripts forgotten', happen: () => tell(port, 'SCRIPT FLUSH') },
    {
      name: 'slow to answer for 3 s',
      async happen() {
        await tell(port, `CLIENT PAUSE ${FAULT_MS}`)
        await sleep(FAULT_MS)
      },
    },
  ]
  return { url, faults, pid: () => server.pid, stop: () => server.stop() }
}

/** Sends one command without waiting for the reply, because the command may close our connection. @param {number} port @param {string} command @returns {Promise<void>} */
function tell(port, command) {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${command}\r\n`))
    socket.once('data', () => socket.destroy())
    socket.on('error', () => {})
    socket.on('close', () => resolve())
  })
}
