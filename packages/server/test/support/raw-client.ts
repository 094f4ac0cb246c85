import { connect, type Socket } from 'node:net'

const QUIET_MS = 20

/** A connection that sends what it is told and keeps what comes back. */
export interface RawClient {
  readonly socket: Socket
  text(): string
  readonly closed: Promise<void>
}

/** Opens a connection and writes the bytes to it, exactly as they are. */
export function openClient(url: string, bytes = ''): RawClient {
  const { port, hostname } = new URL(url)
  const socket = connect(Number(port), hostname)
  let text = ''
  socket.on('data', chunk => {
    text += chunk.toString('latin1')
  })
  // A reset is one way to reject; what was received before it still counts.
  socket.on('error', () => {})
  if (bytes !== '') socket.write(bytes, 'latin1')
  const closed = new Promise<void>(resolve => socket.on('close', () => resolve()))
  return { socket, text: () => text, closed }
}

/**
 * Waits until the connection closes, nothing has come for a moment, or nothing has come at all for `patienceMs`.
 */
export async function untilQuiet({ socket, closed }: RawClient, patienceMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const quiet = new Promise<void>(resolve => {
    timer = setTimeout(resolve, patienceMs)
    socket.on('data', () => {
      clearTimeout(timer)
      timer = setTimeout(resolve, QUIET_MS)
    })
  })
  await Promise.race([closed, quiet])
  clearTimeout(timer)
}

/** Returns the statuses of all responses in a text, in order. */
export function statusesIn(text: string): number[] {
  return text.match(/HTTP\/1\.1 \d{3}/g)?.map(line => Number(line.slice(-3))) ?? []
}
