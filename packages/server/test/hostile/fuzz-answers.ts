/** Upstreams that answer with anything but HTTP, or with HTTP that no client should receive. */
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createDice, type Dice } from '../../../headgate/test/simulation/dice.js'
import { openClient } from '../support/raw-client.js'
import { lines } from '../support/raw-http.js'
import type { Attack, AttackGroup } from './attack.js'
import { inParallel } from './in-parallel.js'
import { spoil } from './spoil.js'
import { underAttack } from './target.js'

const STATUS_LINES = [
  'HTTP/1.1 200 OK',
  'HTTP/1.0 200 OK',
  'HTTP/1.1 200',
  'HTTP/1.1 200 ',
  'HTTP/1.1 200 a\x01b',
  'HTTP/1.1 200 \x7f',
  'HTTP/1.1 200 \xff\xfe',
  'HTTP/1.1 000 OK',
  'HTTP/1.1 99 OK',
  'HTTP/1.1 999 OK',
  'HTTP/1.1 1000 OK',
  'HTTP/1.1 -1 OK',
  'HTTP/2.0 200 OK',
  'HTTP/0.9 200 OK',
  'HTTP/3 200 OK',
  'http/1.1 200 OK',
  'HTTP/1.1  200  OK',
  'HTTP/1.1\t200\tOK',
  'HTTP/1.1 100 Continue',
  'HTTP/1.1 101 Switching Protocols',
  'HTTP/1.1 103 Early Hints',
  'HTTP/1.1 204 No Content',
  'HTTP/1.1 205 Reset Content',
  'HTTP/1.1 304 Not Modified',
  'HTTP/1.1 407 Proxy',
  'ICY 200 OK',
  'SSH-2.0-x',
  '',
] as const
const FIELDS = [
  'Content-Length: 2',
  'Content-Length: 5',
  'Content-Length: 0',
  'Content-Length: -1',
  'Content-Length: 2, 2',
  'Content-Length: 99999999999999999999',
  'Content-Length: 0x2',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: gzip',
  'Transfer-Encoding: chunked, identity',
  'Transfer-Encoding : chunked',
  'Connection: close',
  'Connection: keep-alive',
  'Connection: upgrade',
  'Connection: x-ratelimit-limit, content-length',
  'Upgrade: h2c',
  'Keep-Alive: timeout=999999999999',
  'Trailer: X-T',
  'Set-Cookie: a=\x00',
  'X-A: \x01',
  'X-A:',
  ': b',
  'X A: b',
  ' folded',
  'X-\xe9: \xe9',
  'Date: x',
  '__proto__: x',
  'constructor: x',
  'HTTP/1.1 200 OK',
  `X-Long: ${'x'.repeat(20_000)}`,
] as const
const BODIES = [
  '',
  'ok',
  'hello',
  '2\r\nok\r\n0\r\n\r\n',
  '2\r\nok\r\n',
  '2;ext="\x00"\r\nok\r\n0\r\n\r\n',
  'ffffffffffffffff\r\nok',
  '-2\r\nok\r\n0\r\n\r\n',
  '0\r\nX-Trailer: \x01\r\n\r\n',
  '0\r\nContent-Length: 5\r\n\r\nhello',
  'okHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npoison-N.',
  'x'.repeat(100_000),
] as const
const FRAMINGS: readonly [readonly [string, string], ...(readonly [string, string])[]] = [
  ['Content-Length: 2', 'ok'],
  ['Transfer-Encoding: chunked', '2\r\nok\r\n0\r\n\r\n'],
  ['Content-Length: 100000', 'x'.repeat(100_000)],
  ['Content-Length: 2', 'okHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npoison-N.'],
]
const ENDS = ['close', 'close', 'close', 'reset', 'half', 'stay'] as const
const REQUESTS = ['GET', 'GET', 'HEAD', 'POST', 'DELETE'] as const
/** How long a client waits for an answer that the upstream does not finish. */
const PATIENCE_MS = 1_500

const fuzzAnswers: Attack = {
  name: 'fuzzed answers',
  does: 'answers with random status lines, headers, chunks and early ends, cut, repeated and with flipped bytes',
  expected:
    '502, or an answer that is sound HTTP; never the end of the process, and nothing for another client',
  inShort: true,
  run: ({ seed, isShort }) =>
    underAttack({}, async ({ gatewayUrl, upstream }) => {
      const cases = isShort ? 250 : 10_000
      upstream.answerBy((request, socket) => {
        const number = Number(/^\S+ \/case\/(\d+) /.exec(request)?.[1])
        void answerCase(number, createDice(seed).fork(`answer ${number}`), socket)
      })
      const outcomes = new Map<string, number>()
      await inParallel(cases, 64, async number => {
        const dice = createDice(seed).fork(`request ${number}`)
        const outcome = await ask(gatewayUrl, number, dice)
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      })
      return `${cases} answers: ${[...outcomes].map(([what, count]) => `${count} ${what}`).join(', ')}`
    }),
}

async function answerCase(number: number, dice: Dice, socket: Socket): Promise<void> {
  // Half of them are valid up to one place: what is rejected at the first byte reaches nothing behind it.
  const isSound = dice.chance(0.5)
  const fields = Array.from({ length: dice.whole(0, isSound ? 1 : 4) }, () => dice.pick(FIELDS))
  const [framing, fitting] = dice.pick(FRAMINGS)
  const head = isSound
    ? lines('HTTP/1.1 200 OK', framing, ...fields)
    : lines(dice.pick(STATUS_LINES), ...fields)
  const body = (isSound ? fitting : dice.pick(BODIES)).replace('poison-N.', `poison-${number}.`)
  const whole = dice.chance(0.1) ? body : `${head}${body}`
  const bytes = dice.chance(0.5) ? spoil(whole, dice) : whole
  const cut = dice.chance(0.3) ? dice.whole(0, bytes.length) : bytes.length
  // A second answer comes with the first: once the connection is another request's, HTTP/1.1 cannot distinguish
  // them.
  const split = dice.chance(0.3) && !bytes.includes('poison') ? dice.whole(0, cut) : 0
  if (split > 0) {
    socket.write(bytes.slice(0, split), 'latin1')
    await sleep(dice.whole(0, 5))
  }
  socket.write(bytes.slice(split, cut), 'latin1')
  const end = dice.pick(ENDS)
  if (end === 'stay') return
  await sleep(dice.whole(0, 10))
  if (end === 'close') socket.destroySoon()
  else if (end === 'half') socket.end()
  else socket.resetAndDestroy()
}

/** Asks, and reads until the gateway closes or the patience ends. */
async function ask(url: string, number: number, dice: Dice): Promise<string> {
  const method = dice.pick(REQUESTS)
  const body = method === 'POST' ? ['Content-Length: 3'] : []
  const head = lines(`${method} /case/${number} HTTP/1.1`, 'Host: a', 'Connection: close', ...body)
  const client = openClient(url, `${head}${method === 'POST' ? 'abc' : ''}`)
  await Promise.race([client.closed, sleep(PATIENCE_MS)])
  client.socket.destroy()
  const text = client.text()
  if (text === '') return 'unfinished'
  const answer = text.split('\r\n\r\n')[0] ?? ''
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not come through
  if (!/^HTTP\/1\.1 [2-9]\d\d [^\x00-\x08\x0a-\x1f]*(\r\n[^\x00-\x08\x0a-\x1f]*)*$/.test(answer)) {
    throw new Error(`case ${number}: ${JSON.stringify(answer.slice(0, 80))}`)
  }
  const leaked = /poison-(\d+)\./.exec(text)?.[1]
  if (leaked !== undefined && Number(leaked) !== number)
    throw new Error(`case ${number} got the answer of ${leaked}`)
  return answer.startsWith('HTTP/1.1 502') ? 'were 502' : 'passed on'
}

export const answers: AttackGroup = { title: 'Upstream', attacks: [fuzzAnswers] }
