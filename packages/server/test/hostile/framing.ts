/** Requests that two servers could read in two ways: where one ends and the next begins. */
import { lines, rawRequest } from '../support/raw-http.js'
import type { Attack, AttackGroup } from './attack.js'
import { readRequests } from './read-requests.js'
import { underAttack } from './target.js'

const SMUGGLED = lines('GET /smuggled HTTP/1.1', 'Host: a')
const post = (...headers: string[]) => lines('POST / HTTP/1.1', 'Host: a', ...headers)

/** The attempts, as bytes on one connection. */
const SMUGGLING: readonly (readonly [name: string, bytes: string])[] = [
  ['length and chunks', `${post('Content-Length: 6', 'Transfer-Encoding: chunked')}0\r\n\r\n${SMUGGLED}`],
  ['chunks and length', `${post('Transfer-Encoding: chunked', 'Content-Length: 6')}0\r\n\r\n${SMUGGLED}`],
  ['space before the colon', `${post('Transfer-Encoding : chunked')}0\r\n\r\n${SMUGGLED}`],
  ['tab before the coding', `${post('Transfer-Encoding:\tchunked')}0\r\n\r\n${SMUGGLED}`],
  ['vertical tab before it', `${post('Transfer-Encoding: \x0bchunked')}0\r\n\r\n${SMUGGLED}`],
  ['coding in capitals', `${post('Transfer-Encoding: CHUNKED')}0\r\n\r\n${SMUGGLED}`],
  [
    'coding twice',
    `${post('Transfer-Encoding: chunked', 'Transfer-Encoding: identity')}0\r\n\r\n${SMUGGLED}`,
  ],
  ['coding with an underscore', `${post('Transfer_Encoding: chunked')}0\r\n\r\n${SMUGGLED}`],
  ['coding in quotes', `${post('Transfer-Encoding: "chunked"')}0\r\n\r\n${SMUGGLED}`],
  ['folded coding', `${post('Transfer-Encoding:\r\n chunked')}0\r\n\r\n${SMUGGLED}`],
  ['two lengths', `${post('Content-Length: 0', 'Content-Length: 44')}${SMUGGLED}`],
  ['lengths in a list', `${post('Content-Length: 0, 44')}${SMUGGLED}`],
  ['length with a sign', `${post('Content-Length: +0')}${SMUGGLED}`],
  ['negative length', `${post('Content-Length: -1')}${SMUGGLED}`],
  ['length in hex', `${post('Content-Length: 0x0')}${SMUGGLED}`],
  ['length beyond 2^64', `${post('Content-Length: 18446744073709551616')}${SMUGGLED}`],
  ['chunk beyond 2^64', `${post('Transfer-Encoding: chunked')}10000000000000000\r\n${SMUGGLED}`],
  ['negative chunk', `${post('Transfer-Encoding: chunked')}-1\r\n${SMUGGLED}`],
  ['chunk in 0x', `${post('Transfer-Encoding: chunked')}0x0\r\n\r\n${SMUGGLED}`],
  ['chunk with an extension', `${post('Transfer-Encoding: chunked')}0;${'x'.repeat(40)}\r\n\r\n${SMUGGLED}`],
  ['extension with a line feed', `${post('Transfer-Encoding: chunked')}2;\nxx\r\n0\r\n\r\n${SMUGGLED}`],
  ['chunk longer than said', `${post('Transfer-Encoding: chunked')}1\r\nabc\r\n0\r\n\r\n${SMUGGLED}`],
  ['bare line feeds', `POST / HTTP/1.1\nHost: a\nContent-Length: 0\n\n${SMUGGLED}`],
  ['bare carriage returns', `POST / HTTP/1.1\rHost: a\rContent-Length: 0\r\r${SMUGGLED}`],
  ['folded header', `${post('X-A: b', ' Content-Length: 44')}${SMUGGLED}`],
  ['a null in a header', `${post('X-A: b\0c', 'Content-Length: 0')}${SMUGGLED}`],
  [
    'chunked in HTTP/1.0',
    `POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`,
  ],
  ['a body of GET', `${lines('GET / HTTP/1.1', 'Host: a', 'Content-Length: 42')}${SMUGGLED}`],
  ['trailers', `${post('Transfer-Encoding: chunked')}0\r\nContent-Length: 5\r\nHost: b\r\n\r\n${SMUGGLED}`],
]

const smuggling: Attack = {
  name: 'smuggling',
  does: `hides a request in the body of another by ${SMUGGLING.length} ambiguous spellings of its length`,
  expected: 'rejected, or the upstream reads only valid requests, each with our headers about the client',
  inShort: true,
  run: () =>
    underAttack({}, async ({ gatewayUrl, upstream }) => {
      upstream.received.length = 0
      let rejected = 0
      for (const [, bytes] of SMUGGLING) {
        if ((await rawRequest(gatewayUrl, bytes, 60)).status >= 400) rejected++
      }
      const seen = upstream.received.flatMap(readRequests)
      const foreign = seen.find(({ headers }) => !headers.some(([name]) => name === 'x-forwarded-for'))
      if (foreign !== undefined) throw new Error(`not written by the gateway: ${JSON.stringify(foreign)}`)
      return `${rejected} of ${SMUGGLING.length} rejected, ${seen.length} sound requests forwarded`
    }),
}

export const framing: AttackGroup = { title: 'Framing', attacks: [smuggling] }
