import { createReadStream } from 'node:fs'
import type { Readable } from 'node:stream'

/** Longer lines are cut: no line about a request is that long, and an endless one would fill the memory. */
const MAX_LINE = 64 * 1024
/** As long as a substring of a line is kept, so is everything that was read with it. */
const CHUNK_BYTES = 64 * 1024

/** Some lines of a log, and how many bytes have been read so far. */
export interface Lines {
  readonly lines: readonly string[]
  readonly bytesRead: number
}

/** Returns the stream of a file, or of standard input for `-`. */
export function openLog(file: string): Readable {
  return file === '-' ? process.stdin : createReadStream(file, { highWaterMark: CHUNK_BYTES })
}

/** Yields the lines of a stream, many at a time, without their ends. Empty ones are left out. */
export async function* readLines(stream: Readable): AsyncGenerator<Lines> {
  let rest = ''
  let bytesRead = 0
  const decoder = new TextDecoder()
  for await (const chunk of stream) {
    bytesRead += chunk.length
    const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split('\n')
    rest = lines.pop()?.slice(0, MAX_LINE) ?? ''
    yield { lines: lines.map(withoutEnd).filter(isFilled), bytesRead }
  }
  yield { lines: [withoutEnd(rest)].filter(isFilled), bytesRead }
}

function withoutEnd(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line
}

function isFilled(line: string): boolean {
  return line !== ''
}
