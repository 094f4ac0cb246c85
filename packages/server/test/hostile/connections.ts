/** Clients that hold on to what they were given: sockets, permits, time. */
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { openClient, type RawClient, statusesIn, untilQuiet } from '../support/raw-client.js'
import { lines } from '../support/raw-http.js'
import type { Attack, AttackGroup } from './attack.js'
import { type Target, underAttack } from './target.js'

const GET = lines('GET / HTTP/1.1', 'Host: a')
const MB = 1024 * 1024

function hold(url: string, count: number, bytes: string): RawClient[] {
  return Array.from({ length: count }, () => openClient(url, bytes))
}

/** Waits for a condition of an attack, and rejects in its words if it does not come. */
async function until(
  words: string,
  withinMs: number,
  isSo: () => boolean | Promise<boolean>,
): Promise<number> {
  const began = performance.now()
  while (!(await isSo())) {
    if (performance.now() - began > withinMs)
      throw new Error(`after ${withinMs / 1_000} s still not: ${words}`)
    await sleep(50)
  }
  return Math.round((performance.now() - began) / 100) / 10
}

/**
 * Checks that others are served during the attack: from an address of their own, if the system has a second one.
 */
async function serveHonest({ gatewayUrl }: Target): Promise<void> {
  const answer = await new Promise<number | undefined>((resolve, reject) => {
    request(gatewayUrl, { localAddress: '127.0.0.2', agent: false, timeout: 5_000 }, incoming =>
      resolve(incoming.resume().statusCode),
    )
      .on('error', reject)
      .on('timeout', () => reject(new Error('an honest client got no answer')))
      .end()
  })
  if (answer !== 200) throw new Error(`an honest client got ${answer}`)
}

const closedOf = (clients: readonly RawClient[]) => clients.filter(({ socket }) => socket.destroyed).length

const tunnels: Attack = {
  name: 'tunnels',
  does: 'asks for 1,100 tunnels with CONNECT, sends 100 KB into each and stays connected',
  expected: 'every socket is closed within seconds; others are served meanwhile',
  inShort: true,
  run: ({ isShort }) =>
    underAttack({ args: ['--max-client-connections', '0'] }, async target => {
      const count = isShort ? 100 : 1_100
      const clients = hold(
        target.gatewayUrl,
        count,
        `${lines('CONNECT x:1 HTTP/1.1', 'Host: x:1')}${'x'.repeat(100_000)}`,
      )
      await serveHonest(target)
      const seconds = await until('all closed', 10_000, () => closedOf(clients) === count)
      const rejected = clients.filter(client => statusesIn(client.text())[0] === 501).length
      return `${count} sockets closed ${seconds} s later, ${rejected} with 501`
    }),
}

const slowHeads: Attack = {
  name: 'slow heads',
  does: 'opens 1,000 connections and sends a byte of a head every other second',
  expected:
    'beyond the bound of a client closed at once, the others as overdue; others are served; at most 50 MB more memory',
  inShort: false,
  run: () =>
    underAttack({}, async target => {
      const before = target.residentBytes()
      const clients = hold(target.gatewayUrl, 1_000, 'GET / HTTP/1.1\r\n')
      const trickle = setInterval(() => {
        for (const { socket } of clients) if (socket.writable) socket.write('x')
      }, 2_000)
      await until('bounded', 5_000, () => closedOf(clients) >= 1_000 - 256)
      await serveHonest(target)
      const seconds = await until('all closed', 30_000, () => closedOf(clients) === 1_000)
      clearInterval(trickle)
      return `all closed in ${seconds} s${growth(target, before, 50)}`
    }),
}

const slowBodies: Attack = {
  name: 'slow bodies',
  does: 'sends 500 bodies at a byte every two seconds',
  expected:
    'no more connections to the upstream than a client may have requests; all closed by the rate of bodies',
  inShort: false,
  run: () =>
    underAttack({ args: ['--max-client-connections', '0'] }, async target => {
      target.upstream.fallSilent()
      const body = lines('POST / HTTP/1.1', 'Host: a', 'Content-Length: 100000')
      const clients = hold(target.gatewayUrl, 500, body)
      let most = 0
      const trickle = setInterval(() => {
        most = Math.max(most, target.upstream.sockets.size)
        for (const { socket } of clients) if (socket.writable) socket.write('x')
      }, 500)
      const seconds = await until('all closed', 40_000, () => closedOf(clients) === 500)
      clearInterval(trickle)
      if (most > 128) throw new Error(`${most} connections to the upstream`)
      return `${most} connections to the upstream at most, all closed in ${seconds} s`
    }),
}

const deafReaders: Attack = {
  name: 'deaf readers',
  does: 'asks for 300 responses of 20 MB and reads none of them (--response-timeout 5)',
  expected: 'cut off after the time without reading; the upstream is released; at most 200 MB more memory',
  inShort: false,
  run: () =>
    underAttack(
      { args: ['--response-timeout', '5', '--max-client-requests', '0', '--max-client-connections', '0'] },
      async target => {
        const before = target.residentBytes()
        const part = Buffer.alloc(MB, 'x')
        let asked = 0
        target.upstream.answerBy((_request, socket) => {
          asked++
          socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${20 * MB}\r\n\r\n`)
          for (let sent = 0; sent < 20; sent++) socket.write(part)
        })
        const clients = hold(target.gatewayUrl, 300, GET)
        for (const { socket } of clients) socket.pause()
        await until('asked', 40_000, () => asked === 300)
        const seconds = await until('let go of', 40_000, () => target.upstream.sockets.size === 0)
        const memory = growth(target, before, 200)
        for (const { socket } of clients) socket.destroy()
        return `all let go of in ${seconds} s${memory}`
      },
    ),
}

const pipelining: Attack = {
  name: 'pipelining',
  does: 'sends 10,000 requests down one connection at once to an upstream that does not answer',
  expected: 'no more connections to the upstream than a connection may have requests in progress',
  inShort: false,
  run: () =>
    underAttack({}, async target => {
      target.upstream.fallSilent()
      const client = openClient(target.gatewayUrl, GET.repeat(10_000))
      await until('asked', 10_000, () => target.upstream.sockets.size >= 16)
      await sleep(500)
      const most = target.upstream.sockets.size
      if (most > 17) throw new Error(`${most} connections to the upstream`)
      client.socket.destroy()
      await until('let go of', 5_000, () => target.upstream.sockets.size <= 1)
      return `${most} connections to the upstream, gone with the client`
    }),
}

const strayLineEnds: Attack = {
  name: 'stray line ends',
  does: 'asks once, then keeps 100 connections open with an empty line a second',
  expected: 'closed within 25 seconds',
  inShort: false,
  run: () =>
    underAttack({}, async target => {
      const clients = hold(target.gatewayUrl, 100, GET)
      const trickle = setInterval(() => {
        for (const { socket } of clients) if (socket.writable) socket.write('\r\n')
      }, 1_000)
      const seconds = await until('all closed', 25_000, () => closedOf(clients) === 100)
      clearInterval(trickle)
      return `all closed in ${seconds} s`
    }),
}

const tinyHeaders: Attack = {
  name: 'tiny headers',
  does: 'sends 1,000 headers of two letters, so that a server drops those we add',
  expected: '431; at the bound itself our headers come before the client’s',
  inShort: false,
  run: () =>
    underAttack({}, async ({ gatewayUrl, upstream }) => {
      const ask = async (count: number) => {
        const client = openClient(
          gatewayUrl,
          lines('GET / HTTP/1.1', 'Host: a', ...new Array(count).fill('a: b')),
        )
        await untilQuiet(client, 5_000)
        client.socket.destroy()
        return statusesIn(client.text())[0]
      }
      upstream.received.length = 0
      const statuses = [await ask(1_000), await ask(99)]
      if (String(statuses) !== '431,200') throw new Error(`got ${statuses}`)
      const seen = upstream.received.join('')
      if (seen.indexOf('X-Forwarded-For') > seen.indexOf('a: b')) throw new Error('ours come last')
      return '431 for 1,000; with 100 ours come first'
    }),
}

const unwantedUpload: Attack = {
  name: 'unwanted upload',
  does: 'is over its limit and uploads endlessly all the same',
  expected: '429 at once, at most 64 KB read, then closed',
  inShort: false,
  run: () =>
    underAttack(
      {
        config:
          'policies:\n  api: { algorithm: sliding-window-log, limit: 1, window: 1h }\ndefault: { policy: api }\n',
      },
      async ({ gatewayUrl, upstream }) => {
        upstream.received.length = 0
        const client = openClient(
          gatewayUrl,
          lines('POST / HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'),
        )
        const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
        let sent = 0
        while (!client.socket.destroyed && sent < 400) {
          if (client.socket.writable && client.socket.writableLength < MB) client.socket.write(chunk)
          sent++
          await sleep(5)
        }
        await until('closed', 5_000, () => client.socket.destroyed)
        const statuses = statusesIn(client.text())
        if (String(statuses) !== '429') throw new Error(`got ${statuses}`)
        if (upstream.received.length > 0) throw new Error('the upstream heard of it')
        return '429, closed; the upstream heard nothing'
      },
    ),
}

const stopUnderLoad: Attack = {
  name: 'stop under load',
  does: 'sends SIGTERM, as an operator, while 50 connections ask without pause',
  expected:
    'every request that reached the upstream is answered, health says 503 first, exit within five seconds',
  inShort: true,
  run: () =>
    underAttack({}, async target => {
      const { gatewayUrl, adminUrl, upstream } = target
      upstream.received.length = 0
      const agent = new Agent({ keepAlive: true, maxSockets: 50 })
      let answered = 0
      let unread = 0
      let isOver = false
      const one = () =>
        new Promise<void>(resolve => {
          const asked = request(gatewayUrl, { agent }, answer => {
            answered++
            answer.resume().on('close', resolve)
          })
          asked.on('error', (error: NodeJS.ErrnoException) => {
            // Closed while idle, or never accepted: nothing of the request was read, and clients send it again.
            if (error.code === 'ECONNREFUSED') isOver = true
            else unread++
            resolve()
          })
          asked.end()
        })
      const workers = Array.from({ length: 50 }, async () => {
        while (!isOver) await one()
      })
      await until('under load', 10_000, () => answered > 500)
      const stopped = target.stop()
      await until('health is 503', 2_000, async () => (await fetch(`${adminUrl}/healthz`)).status === 503)
      await Promise.all(workers)
      agent.destroy()
      await stopped
      const forwarded = upstream.received.join('').match(/GET \/ HTTP/g)?.length ?? 0
      if (forwarded !== answered)
        throw new Error(`${answered} answered of ${forwarded} that reached the upstream`)
      return `${answered} answered, none dropped, ${unread} on connections that were closed at rest`
    }),
}

function growth(target: Target, before: number | null, mostMb: number): string {
  const after = target.residentBytes()
  if (before === null || after === null) return ''
  const grownMb = Math.round((after - before) / MB)
  if (grownMb > mostMb) throw new Error(`${grownMb} MB more memory`)
  return `, ${grownMb} MB more memory`
}

export const connections: AttackGroup = {
  title: 'Connections',
  attacks: [
    tunnels,
    tinyHeaders,
    pipelining,
    unwantedUpload,
    slowHeads,
    slowBodies,
    deafReaders,
    strayLineEnds,
    stopUnderLoad,
  ],
}
