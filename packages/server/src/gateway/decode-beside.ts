/** Decodes a compressed answer while its bytes pass on as they are. */
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  type Gunzip,
} from 'node:zlib'

/** Decodes what is written to it. */
export interface BesideDecoder {
  /** Returns false if no more should be written before `onDrain` is called. */
  write(chunk: Buffer, onDrain: () => void): boolean
  readonly isBehind: boolean
  /** Decodes the rest, also if the input broke off; says whether all of it could be decoded. */
  end(done: (isSound: boolean) => void): void
}

/** Beyond this an answer is not worth the processor's time: a small one can decode to any length. */
const MOST_DECODED_BYTES = 256 * 2 ** 20

const FLUSHED = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH }
const BROTLI_FLUSHED = {
  flush: constants.BROTLI_OPERATION_FLUSH,
  finishFlush: constants.BROTLI_OPERATION_FLUSH,
}
/** The lower half of the first byte of a zlib stream. */
const DEFLATE_METHOD = 8

/** Returns null for an encoding that is not known. */
export function decodeBeside(encoding: string, onData: (chunk: Buffer) => void): BesideDecoder | null {
  if (!['gzip', 'x-gzip', 'deflate', 'br'].includes(encoding)) return null
  let stream: Gunzip | null = null
  let decoded = 0
  let isSound = true
  let onFree = () => {}

  function open(first: Buffer): Gunzip {
    const made = decoderOf(encoding, first)
    made.on('data', (chunk: Buffer) => {
      decoded += chunk.length
      if (decoded > MOST_DECODED_BYTES) made.destroy(new Error('too long'))
      else onData(chunk)
    })
    made.on('drain', () => onFree())
    made.on('error', () => {
      isSound = false
      onFree()
    })
    return made
  }

  return {
    write(chunk, onDrain) {
      if (chunk.length === 0 || !isSound) return true
      stream ??= open(chunk)
      if (stream.destroyed || stream.write(chunk)) return true
      onFree = onDrain
      return false
    },
    get isBehind() {
      return stream?.writableNeedDrain === true && !stream.destroyed
    },
    end(done) {
      if (stream === null || stream.destroyed) return done(isSound)
      stream.once('close', () => done(isSound))
      stream.end()
    },
  }
}

function decoderOf(encoding: string, first: Buffer): Gunzip {
  if (encoding === 'br') return createBrotliDecompress(BROTLI_FLUSHED) as unknown as Gunzip
  if (encoding !== 'deflate') return createGunzip(FLUSHED)
  // Some servers send the bare format under this name.
  const isWrapped = ((first[0] as number) & 0x0f) === DEFLATE_METHOD
  return isWrapped ? createInflate(FLUSHED) : (createInflateRaw(FLUSHED) as unknown as Gunzip)
}
