/** The ready policy `login` of a policy file, enforced by the gateway in front of an app that knows the passwords. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseConfig } from 'headgate/config'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startGateway, type TestGateway } from './support/test-gateway.js'

const FILE = `
trustedProxies: [127.0.0.1]
identify:
  - user: { header: x-account, from: [127.0.0.1] }
  - ip
rules:
  - match: { method: POST, path: /login }
    policy: login
`

let upstream: Server
let gateway: TestGateway

beforeAll(async () => {
  upstream = createServer((req, res) => {
    res.writeHead(req.headers['x-password'] === 'right' ? 204 : 401).end()
  })
  await new Promise<void>(resolve => upstream.listen(0, '127.0.0.1', resolve))
  const { port } = upstream.address() as AddressInfo
  gateway = await startGateway(`http://127.0.0.1:${port}`, {
    config: await parseConfig(FILE, 'headgate.yaml'),
  })
})
afterAll(async () => {
  await gateway.close()
  upstream.closeAllConnections()
  upstream.close()
})

async function attempt(account: string, password: string, address: string): Promise<number> {
  const headers = { 'x-account': account, 'x-password': password, 'x-forwarded-for': address }
  const { status } = await fetch(`${gateway.url}/login`, { method: 'POST', headers })
  return status
}

it('guesses at one account from one address are denied, and the owner gets in from another', async () => {
  const statuses: number[] = []
  for (let guess = 0; guess < 7; guess++) statuses.push(await attempt('ada', 'wrong', '198.51.100.1'))
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429])
  expect(await attempt('ada', 'right', '198.51.100.1')).toBe(429)
  expect(await attempt('ada', 'right', '203.0.113.7')).toBe(204)
})

it('credential stuffing gets a few guesses from each address, whatever account it tries', async () => {
  let guesses = 0
  for (let account = 0; account < 30; account++) {
    if ((await attempt(`user${account}`, 'leaked', '198.51.100.2')) === 401) guesses++
  }
  expect(guesses).toBe(20)
})

it('success forgets what the account has used there', async () => {
  for (let round = 0; round < 3; round++) {
    for (let guess = 0; guess < 4; guess++) {
      expect(await attempt('eve', 'typo', '198.51.100.3')).toBe(401)
    }
    expect(await attempt('eve', 'right', '198.51.100.3')).toBe(204)
  }
})
