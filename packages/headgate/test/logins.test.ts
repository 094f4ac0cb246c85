/** Attacks on a login, over real HTTP. Addresses are those that a proxy on this machine reports. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { afterEach, expect, it } from 'vitest'
import { defineConfig, parseConfig } from '../src/config.js'
import { rateLimit } from '../src/express.js'
import { createLimiter, type Limiter, login, together } from '../src/index.js'

const servers: Server[] = []
const limiters: Pick<Limiter, 'close'>[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) server.close()
  for (const limiter of limiters.splice(0)) await limiter.close()
})

/** Passwords by account. */
const PASSWORDS = new Map(Array.from({ length: 300 }, (_, n) => [`user${n}`, `secret${n}`]))

type Attempt = (account: string, password: string, address: string) => Promise<Response>

async function serve(limit: express.RequestHandler): Promise<Attempt> {
  const app = express()
  app.set('trust proxy', 'loopback')
  app.use(express.json())
  app.post('/login', limit, (req, res) => {
    res.sendStatus(PASSWORDS.get(req.body.account) === req.body.password ? 200 : 401)
  })
  const server = createServer(app).listen(0, '127.0.0.1')
  servers.push(server)
  await new Promise(resolve => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/login`
  return (account, password, address) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
      body: JSON.stringify({ account, password }),
    })
}

const inCode = () => {
  const limiter = createLimiter({ policies: { ...login() } })
  limiters.push(limiter)
  return serve(
    rateLimit({
      limiter,
      policy: 'login',
      subject: req => together(`user:${req.body.account}`, `ip:${req.ip}`),
      also: req => [{ subject: `ip:${req.ip}`, policy: 'login-address' as const }],
      resetIf: status => status < 400,
    }),
  )
}

const byReadyPolicy = async () => {
  const text = `
rules:
  - match: { method: POST, path: /login }
    policy: login
`
  const limiter = createLimiter({ config: await parseConfig(text, 'headgate.yaml') })
  limiters.push(limiter)
  return serve(rateLimit({ limiter, subject: req => [`user:${req.body.account}`, `ip:${req.ip}`] }))
}

const byFile = () => {
  const { 'login-address': address, login: account } = login()
  const config = defineConfig({
    policies: { login: account, 'login-address': address },
    rules: [
      {
        match: { method: 'POST', path: '/login' },
        policy: 'login',
        per: ['user', 'ip'],
        also: [{ subject: 'ip', policy: 'login-address' }],
        resetIf: ['2xx', '3xx'],
      },
    ],
  })
  const limiter = createLimiter({ config })
  limiters.push(limiter)
  return serve(rateLimit({ limiter, subject: req => [`user:${req.body.account}`, `ip:${req.ip}`] }))
}

it.each([
  ['in code', inCode],
  ['by a policy file', byFile],
  ['by the ready policy of a file', byReadyPolicy],
])('a login %s is guarded against guesses, and its owner gets in', async (_, open) => {
  const attempt = await open()
  const statuses: number[] = []
  for (let guess = 0; guess < 12; guess++) {
    statuses.push((await attempt('user1', `wrong${guess}`, '198.51.100.1')).status)
  }
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429, 429, 429, 429, 429, 429])
  const banned = await attempt('user1', 'secret1', '198.51.100.1')
  expect(banned.status).toBe(429)
  expect(await banned.json()).toMatchObject({ title: 'Temporarily banned' })
  expect(Number(banned.headers.get('retry-after'))).toBeGreaterThan(800)
  // The owner is at home: somebody else's guesses are no affair of hers.
  expect((await attempt('user1', 'secret1', '203.0.113.7')).status).toBe(200)
})

it.each([
  ['in code', inCode],
  ['by a policy file', byFile],
  ['by the ready policy of a file', byReadyPolicy],
])('credential stuffing over many addresses gets a few guesses at each, %s', async (_, open) => {
  const attempt = await open()
  let guesses = 0
  for (let bot = 0; bot < 8; bot++) {
    for (let account = 0; account < 60; account++) {
      const { status } = await attempt(`user${account}`, 'leaked', `198.51.100.${bot}`)
      if (status === 401) guesses++
    }
  }
  expect(guesses).toBe(8 * 20)
  expect((await attempt('user5', 'secret5', '203.0.113.7')).status).toBe(200)
})

it.each([
  ['in code', inCode],
  ['by a policy file', byFile],
  ['by the ready policy of a file', byReadyPolicy],
])(
  'password spraying over many accounts is slow, also for who gets into one of them, %s',
  async (_, open) => {
    const attempt = await open()
    let guesses = 0
    for (let account = 0; account < 300; account++) {
      // An account of the attacker's own, to have failures forgotten: it forgets only those of that account.
      await attempt('user0', 'secret0', '198.51.100.9')
      const { status } = await attempt(`user${account}`, 'Summer2026', '198.51.100.9')
      if (status === 401) guesses++
    }
    expect(guesses).toBeLessThanOrEqual(20)
  },
)

it.each([
  ['in code', inCode],
  ['by the ready policy of a file', byReadyPolicy],
])('a login that succeeds forgets the failures before it, and the strikes, %s', async (_, open) => {
  const attempt = await open()
  for (let round = 0; round < 4; round++) {
    for (let guess = 0; guess < 4; guess++)
      expect((await attempt('user1', 'typo', '203.0.113.7')).status).toBe(401)
    const { status } = await attempt('user1', 'secret1', '203.0.113.7')
    expect(status).toBe(200)
  }
})

it('many people behind one address log in', async () => {
  const attempt = await inCode()
  for (let account = 0; account < 60; account++) {
    expect((await attempt(`user${account}`, `secret${account}`, '203.0.113.7')).status).toBe(200)
  }
})

it('two subjects together are told apart from any others', () => {
  const texts = [
    together('user:a', 'ip:192.0.2.1'),
    together('user:a|192.0.2.1', 'ip:192.0.2.1'),
    together('user:a%7C', 'ip:192.0.2.1'),
    together('user:a|', 'ip:192.0.2.1'),
    together('ip:192.0.2.1', 'user:a'),
  ].map(({ type, id }) => `${type}:${id}`)
  expect(new Set(texts).size).toBe(texts.length)
  expect(together('user:a', 'ip:2001:db8::1')).toEqual(together('user:a', 'ip:2001:db8::2'))
  expect(() => together('user:a')).toThrow(/together: expected at least two subjects; got 1/)
  expect(() => together('user:a', '')).toThrow(/subject: expected/)
})

it('subjects together of which one has no id are warned of, once, like one alone', async () => {
  const told: string[] = []
  const limiter = createLimiter({
    policies: { ...login() },
    subject: { onWarning: ({ code }) => told.push(code) },
  })
  await limiter.check(together('user:void', 'ip:192.0.2.1'), { policy: 'login' })
  expect(told).toEqual([])
  for (const id of ['undefined', 'null'])
    await limiter.check(together(`user:${id}`, 'ip:192.0.2.1'), { policy: 'login' })
  expect(told).toEqual(['WARN_HEADGATE_NAMES_NOBODY'])
})

it.each([
  [{ perAccount: '5' }, /^perAccount: expected a whole number/],
  [{ perAddress: -1 }, /^perAddress: expected a whole number/],
  [{ window: 'soon' }, /window: expected a duration/],
  [{ perUser: 5 }, /perUser: expected one of perAccount, perAddress, window/],
])('login(%j) is refused by name', (options, message) => {
  expect(() => login(options as never)).toThrow(message)
})
