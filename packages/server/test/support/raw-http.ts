import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** The text that came back over one connection. */
export interface RawReply {
  readonly text: string
  /** The status of the first response; 0 if none came. */
  readonly status: number
  header(name: string): string | undefined
}

/**
 * Writes the parts to a fresh connection exactly as they are, and returns everything that comes back until the other
 * side closes or nothing more has come for `quietMs` after the first bytes.
 */
export function rawRequest(url: string, parts: string | readonly string[], quietMs = 150): Promise<RawReply> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    let text = ''
    let quiet: NodeJS.Timeout | undefined
    const socket = connect(Number(port), hostname, async () => {
      for (const part of [parts].flat()) {
        if (socket.writable) socket.write(part, 'latin1')
        await sleep(10)
      }
    })
    const finish = () => {
      clearTimeout(quiet)
      socket.destroy()
      resolve(toReply(text))
    }
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      clearTimeout(quiet)
      quiet = setTimeout(finish, quietMs)
    })
    socket.on('close', finish)
    // A reset is one way to reject; what was received before it still counts.
    socket.on('error', () => {})
    setTimeout(() => reject(new Error(`no answer from ${url}`)), 10_000).unref()
  })
}

/** Joins lines as HTTP requires, with the empty one at the end. */
export function lines(...all: string[]): string {
  return `${all.join('\r\n')}\r\n\r\n`
}

function toReply(text: string): RawReply {
  const head = text.split('\r\n\r\n')[0] ?? ''
  return {
    text,
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0),
    header: name => new RegExp(`^${name}: (.*)$`, 'im').exec(head)?.[1],
  }
}
