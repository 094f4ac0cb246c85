import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { headerValues } from '../http/raw-headers.js'
import type { Origin } from './forwarded-headers.js'

const ID = /^[\w.:/+=@-]{1,128}$/

/** Names a request for the logs of everybody it passes: as a trusted proxy named it, or by a name of ours. */
export function requestId(req: IncomingMessage, { isPeerTrusted }: Origin): string {
  if (isPeerTrusted) {
    const given = headerValues(req, 'x-request-id')
    if (given.length === 1 && ID.test(given[0] as string)) return given[0] as string
  }
  return randomUUID()
}
