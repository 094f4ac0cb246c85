/** Reads the one message of a call: a byte that says whether it is compressed, its length in four, and itself. */
import { gunzipSync, inflateSync } from 'node:zlib'
import { CallError, STATUS } from './call-error.js'

const PREFIX_BYTES = 5
const UNPACK = new Map([
  ['gzip', gunzipSync],
  ['deflate', inflateSync],
])

/** The encodings that `unpack` knows, for the header `grpc-accept-encoding`. */
export const ENCODINGS = ['identity', ...UNPACK.keys()].join(',')

/**
 * Reads from chunks of any size. The bytes go into one buffer of the announced length: a list of chunks would grow
 * far beyond their bytes for a client that sends them one by one, and each may keep a whole read of the socket.
 */
export class MessageReader {
  private readonly prefix = Buffer.alloc(PREFIX_BYTES)
  private message: Buffer | null = null
  private taken = 0

  /** `reserve` is told the length of a message that has not come whole, before there is a buffer for it. */
  constructor(
    private readonly maxBytes: number,
    private readonly reserve: (bytes: number) => void,
  ) {}

  /** Takes the next bytes. Returns the message if it is complete. Throws a `CallError` for one that is too long. */
  take(chunk: Buffer): Buffer | null {
    const before = this.taken
    this.taken += chunk.length
    if (before < PREFIX_BYTES) chunk.copy(this.prefix, before)
    if (this.taken < PREFIX_BYTES) return null
    const length = this.lengthOf()
    if (this.taken > PREFIX_BYTES + length) {
      throw new CallError(STATUS.invalidArgument, 'message: expected one; got more')
    }
    const isWhole = this.taken === PREFIX_BYTES + length
    if (before === 0 && isWhole) return chunk.subarray(PREFIX_BYTES)
    if (this.message === null) {
      this.reserve(length)
      this.message = Buffer.allocUnsafeSlow(length)
    }
    const skipped = Math.max(0, PREFIX_BYTES - before)
    chunk.copy(this.message, before + skipped - PREFIX_BYTES, skipped)
    return isWhole ? this.message : null
  }

  get isCompressed(): boolean {
    return this.prefix[0] === 1
  }

  private lengthOf(): number {
    const length = this.prefix.readUInt32BE(1)
    if (length <= this.maxBytes) return length
    const details = `message: expected at most ${this.maxBytes} bytes; got ${length}`
    throw new CallError(STATUS.resourceExhausted, details)
  }
}

/** Unpacks a compressed message; throws a `CallError` if it cannot, or it is too long. */
export function unpack(message: Buffer, encoding: string | undefined, maxBytes: number): Buffer {
  const unpacked = UNPACK.get(encoding ?? '')
  if (unpacked === undefined) {
    throw new CallError(STATUS.unimplemented, `grpc-encoding: expected one of ${ENCODINGS}`)
  }
  try {
    return unpacked(message, { maxOutputLength: maxBytes })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
      throw new CallError(STATUS.resourceExhausted, `message: expected at most ${maxBytes} bytes; got more`)
    }
    throw new CallError(STATUS.invalidArgument, `message: expected ${encoding}; got something else`)
  }
}
