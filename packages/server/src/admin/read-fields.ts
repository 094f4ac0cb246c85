import type { IncomingMessage } from 'node:http'
import { shownName } from 'headgate/config'
import { readJson } from './read-json.js'
import { RequestError } from './request-error.js'

/** The fields of a body, as yet unchecked. */
export type Fields = Readonly<Record<string, unknown>>

/** Reads a body that is a JSON object; throws a `RequestError` for any other. */
export async function readObject(req: IncomingMessage): Promise<Fields> {
  const body = await readJson(req)
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body as Fields
  throw new RequestError(400, 'body', 'expected a JSON object')
}

/** The same for one that may have these fields and no others. */
export async function readFields(req: IncomingMessage, known: readonly string[]): Promise<Fields> {
  const fields = await readObject(req)
  const unknown = Object.keys(fields).find(key => !known.includes(key))
  if (unknown === undefined) return fields
  throw new RequestError(400, shownName(unknown), `expected one of ${known.join(', ')}`)
}
