import type { Readable } from 'node:stream'

/** The bytes we read of a body that nobody wants, so that the client gets to read our answer. */
export const MAX_DRAINED_BYTES = 64 * 1024
const MAX_DRAIN_MS = 1_000

/** Reads past what a client still sends: to its end, or 64 KB, or a second. */
export function drain(source: Readable, done: () => void): void {
  let left = MAX_DRAINED_BYTES
  const finish = () => {
    clearTimeout(timer)
    source.off('data', count).off('end', finish).off('close', finish)
    done()
  }
  const count = (chunk: Buffer) => {
    left -= chunk.length
    if (left <= 0) {
      source.pause()
      finish()
    }
  }
  const timer = setTimeout(finish, MAX_DRAIN_MS)
  source.on('data', count).on('end', finish).on('close', finish)
}
