import type { IncomingMessage } from 'node:http'
import { shownName } from 'headgate/internal'
import { GatheredBytes } from '../http/gathered-bytes.js'
import type { Fields } from './body-fields.js'
import { RequestError } from './endpoint.js'

const MAX_BODY_BYTES = 64 * 1024
const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i

/** Reads the JSON body of a request. Throws a `RequestError` for another type, too long a body, or invalid JSON. */
export async function readJson(req: IncomingMessage, maxBytes = MAX_BODY_BYTES): Promise<unknown> {
  const type = req.headers['content-type'] ?? ''
  if (!JSON_TYPE.test(type))
    throw new RequestError(415, { field: 'content-type', expected: 'application/json' })
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes)
  const text = await readText(req, maxBytes)
  try {
    return JSON.parse(text)
  } catch {
    throw new RequestError(400, { field: 'body', expected: 'JSON', got: 'something else' })
  }
}

/** Reads without `for await`, which would close the connection before a rejection could be written to it. */
function readText(req: IncomingMessage, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const gathered = new GatheredBytes()
    const collect = (chunk: Buffer) => {
      if (gathered.length + chunk.length <= maxBytes) return gathered.add(chunk)
      req.off('data', collect)
      reject(tooLarge(maxBytes))
    }
    req.on('data', collect)
    req.once('end', () => resolve(gathered.bytes().toString()))
    // Nobody is left to hear of it, and clients that break off by the thousand must not fill the log.
    req.once('error', () => reject(new RequestError(400, { field: 'body', expected: 'the whole of it' })))
  })
}

function tooLarge(maxBytes: number): RequestError {
  return new RequestError(413, { field: 'body', expected: `at most ${maxBytes} bytes`, got: 'more' })
}

/** Reads a body that is a JSON object; throws a `RequestError` for any other. */
export async function readObject(req: IncomingMessage, maxBytes?: number): Promise<Fields> {
  const body = await readJson(req, maxBytes)
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Fields
  throw new RequestError(400, { field: 'body', expected: 'a JSON object' })
}

/** Does the same, and rejects fields other than these. */
export async function readFields(
  req: IncomingMessage,
  known: readonly string[],
  maxBytes?: number,
): Promise<Fields> {
  const fields = await readObject(req, maxBytes)
  const unknown = Object.keys(fields).find(key => !known.includes(key))
  if (unknown === undefined) return fields
  throw new RequestError(400, { field: shownName(unknown), expected: `one of ${known.join(', ')}` })
}
