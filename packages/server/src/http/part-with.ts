import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { drain } from './drain.js'
import type { HttpAnswer } from './problem.js'

/**
 * Answers on a socket that node:http has handed over, and is done with it: what the client still sends is read past
 * within the bounds of `drain`, then the socket is destroyed.
 */
export function partWith(socket: Socket, { status, headers, body }: HttpAnswer): void {
  const length = String(Buffer.byteLength(body))
  const fields = [...headers, ['Content-Length', length], ['Connection', 'close']]
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...fields.map(field => field.join(': '))]
  socket.on('error', () => socket.destroy())
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  drain(socket, () => socket.destroySoon())
}
