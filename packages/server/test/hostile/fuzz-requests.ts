/** Requests that are not quite HTTP, at both ports. */
import { createDice, type Dice } from '../../../headgate/test/simulation/dice.js'
import { openClient, untilQuiet } from '../support/raw-client.js'
import { lines } from '../support/raw-http.js'
import type { Attack, AttackGroup } from './attack.js'
import { inParallel } from './in-parallel.js'
import { readRequests } from './read-requests.js'
import { spoil } from './spoil.js'
import { underAttack } from './target.js'

const METHODS = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'PRI',
  'QUERY',
  'get',
  'X',
] as const
const TARGETS = [
  '/',
  '/a?b=c',
  '//evil/x',
  '/../..%2f',
  '/%00',
  '/\xff',
  '*',
  'http://evil/',
  'x:1',
  '\\evil',
  '@evil',
  '/v1/check',
  '/healthz',
  `/${'x'.repeat(17_000)}`,
  '',
] as const
const VERSIONS = [
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/2.0',
  'HTTP/0.9',
  'HTTP/9.9',
  'HTTP/1',
  '',
] as const
const FIELDS = [
  'Content-Length: 5',
  'Content-Length: 0',
  'Content-Length: 100000',
  'Content-Length: +5',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: gzip, chunked',
  'Expect: 100-continue',
  'Expect: x',
  'Connection: close',
  'Connection: keep-alive, x-forwarded-for, host',
  'Connection: upgrade',
  'Upgrade: h2c',
  'Upgrade: websocket',
  'HTTP2-Settings: AAMA',
  'Host: b',
  'X-Forwarded-For: 1.1.1.1',
  'X_Forwarded_For: 1.1.1.1',
  'X-HTTP-Method-Override: DELETE',
  'Content-Type: application/json',
  'Trailer: X-T',
  'TE: trailers',
  '__proto__: x',
  'X-A: \x01',
  ' folded',
  `X-Long: ${'x'.repeat(5_000)}`,
] as const
const BODIES = [
  '',
  '',
  'hello',
  '5\r\nhello\r\n0\r\n\r\n',
  '5\r\nhel',
  'fffffffff\r\n',
  '0\r\nX-T: 1\r\n\r\n',
  '{"subject":"user:1","policy":"api"}',
  'x'.repeat(70_000),
] as const
const PATIENCE_MS = 400

const fuzzRequests: Attack = {
  name: 'fuzzed requests',
  does: 'sends random request lines, headers and bodies to both ports, cut, pipelined, half-closed and with flipped bytes',
  expected:
    'an answer or a closed connection; the upstream reads only valid requests, each with our headers about the client',
  inShort: true,
  run: ({ seed, isShort }) =>
    underAttack({}, async ({ gatewayUrl, adminUrl, upstream }) => {
      const cases = isShort ? 250 : 10_000
      const outcomes = new Map<string, number>()
      upstream.received.length = 0
      await inParallel(cases, 64, async number => {
        const dice = createDice(seed).fork(`request ${number}`)
        const url = dice.chance(0.2) ? adminUrl : gatewayUrl
        const outcome = await send(url, number, dice)
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      })
      const seen = upstream.received.flatMap(readRequests)
      const foreign = seen.find(({ headers }) => countOf(headers, 'x-forwarded-for') !== 1)
      if (foreign !== undefined) throw new Error(`not written by the gateway: ${JSON.stringify(foreign)}`)
      const counts = [...outcomes].sort().map(([what, count]) => `${count} ${what}`)
      return `${cases} connections: ${counts.join(', ')}; ${seen.length} requests forwarded`
    }),
}

async function send(url: string, number: number, dice: Dice): Promise<string> {
  const one = () => {
    const fields = Array.from({ length: dice.whole(0, 3) }, () => dice.pick(FIELDS))
    const host = dice.chance(0.9) ? ['Host: 127.0.0.1'] : []
    // Most are valid up to one place: what is rejected at the first byte reaches nothing behind it.
    const line = dice.chance(0.6)
      ? `${dice.pick(['GET', 'HEAD', 'POST', 'PUT', 'DELETE'])} /a HTTP/1.1`
      : `${dice.pick(METHODS)} ${dice.pick(TARGETS)} ${dice.pick(VERSIONS)}`
    return `${lines(line, ...host, ...fields)}${dice.chance(0.7) ? fittingBody(fields) : dice.pick(BODIES)}`
  }
  const whole = dice.chance(0.3) ? `${one()}${one()}` : one()
  const bytes = dice.chance(0.4) ? spoil(whole, dice) : whole
  const cut = dice.chance(0.2) ? dice.whole(0, bytes.length) : bytes.length
  const client = openClient(url, bytes.slice(0, cut))
  if (dice.chance(0.3)) client.socket.end()
  await untilQuiet(client, PATIENCE_MS)
  if (dice.chance(0.5)) client.socket.resetAndDestroy()
  else client.socket.destroy()
  const text = client.text()
  if (text === '') return 'without an answer'
  const status = /^HTTP\/1\.1 (\d)\d\d /.exec(text)?.[1]
  if (status === undefined) throw new Error(`case ${number}: ${JSON.stringify(text.slice(0, 80))}`)
  if (text.startsWith('HTTP/1.1 500'))
    throw new Error(`case ${number}: 500 for ${JSON.stringify(bytes.slice(0, 200))}`)
  return `${status}xx`
}

/** Ensures that the bytes after the head are not rejected before the request was looked at. */
function fittingBody(fields: readonly string[]): string {
  if (fields.includes('Transfer-Encoding: chunked')) return '5\r\nhello\r\n0\r\n\r\n'
  return fields.includes('Content-Length: 5') ? 'hello' : ''
}

function countOf(headers: readonly (readonly [name: string, value: string])[], wanted: string): number {
  return headers.filter(([name]) => name === wanted).length
}

export const requests: AttackGroup = { title: 'Requests', attacks: [fuzzRequests] }
