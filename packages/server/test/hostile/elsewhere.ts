/** Requests that ask the gateway to go somewhere else than to its upstream. */
import { type AddressInfo, createServer } from 'node:net'
import { openClient, untilQuiet } from '../support/raw-client.js'
import { lines } from '../support/raw-http.js'
import type { Attack, AttackGroup } from './attack.js'
import { underAttack } from './target.js'

/** Each names the address of a server that must never be connected to. */
const WAYS: readonly ((there: string) => string)[] = [
  there => lines(`GET http://${there}/ HTTP/1.1`, 'Host: a'),
  there => lines(`GET http://${there}/ HTTP/1.1`, `Host: ${there}`),
  there => lines(`GET //${there}/ HTTP/1.1`, 'Host: a'),
  there => lines(`GET @${there}/ HTTP/1.1`, 'Host: a'),
  there => lines(`GET /@${there}/ HTTP/1.1`, 'Host: a'),
  there => lines(`GET \\\\${there}\\ HTTP/1.1`, 'Host: a'),
  there => lines(`CONNECT ${there} HTTP/1.1`, `Host: ${there}`),
  there => lines('GET / HTTP/1.1', `Host: ${there}`),
  there => lines('GET / HTTP/1.1', `Host: a@${there}`),
  there => lines('GET / HTTP/1.1', 'Host: a', `Host: ${there}`),
  there => lines('GET / HTTP/1.1', 'Host: a', `X-Forwarded-Host: ${there}`),
  there => lines('GET / HTTP/1.1', 'Host: a', `X-Original-URL: http://${there}/`),
  there => lines('GET / HTTP/1.1', 'Host: a', `X-Rewrite-URL: http://${there}/`),
  there => lines('GET / HTTP/1.1', 'Host: a', `Forwarded: host=${there}`),
]

const elsewhereAttack: Attack = {
  name: 'another server',
  does: `names another server by its address in ${WAYS.length} ways, and as the upstream's redirect`,
  expected: 'nobody connects to it; the redirect is passed to the client',
  inShort: false,
  run: () =>
    underAttack({}, async ({ gatewayUrl, upstream }) => {
      let connections = 0
      const other = createServer(socket => {
        connections++
        socket.destroy()
      })
      await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
      const there = `127.0.0.1:${(other.address() as AddressInfo).port}`
      try {
        const location = `Location: http://${there}/`
        upstream.answerWith(lines('HTTP/1.1 302 Found', location, 'Content-Length: 0'))
        let redirects = 0
        for (const way of WAYS) {
          const client = openClient(gatewayUrl, way(there))
          await untilQuiet(client, 2_000)
          client.socket.destroy()
          if (client.text().includes(location)) redirects++
        }
        if (connections > 0) throw new Error(`${connections} connections to another server`)
        return `no connection; ${redirects} forwarded and redirected, ${WAYS.length - redirects} rejected`
      } finally {
        other.close()
      }
    }),
}

export const elsewhere: AttackGroup = { title: 'Elsewhere', attacks: [elsewhereAttack] }
