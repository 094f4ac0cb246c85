/** No spelling that a framework takes for a route escapes the rule for that route. */
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import KoaRouter from '@koa/router'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createGate } from '../../src/gate/gate.js'
import { configOf, perMinute, ruleOf } from '../support/gate-config.ts'

const HIT = 'this is the login'

/** An app of each framework with one route, /login, for every method. */
const FRAMEWORKS: Record<string, () => Promise<RequestListener> | RequestListener> = {
  express() {
    const app = express()
    app.all('/login', (_req, res) => void res.set('x-hit', HIT).send(HIT))
    return app
  },
  async fastify() {
    const app = fastify()
    app.all('/login', (_req, reply) => reply.header('x-hit', HIT).send(HIT))
    await app.ready()
    return (req, res) => app.routing(req, res)
  },
  koa() {
    const router = new KoaRouter()
    router.all('/login', ctx => {
      ctx.set('x-hit', HIT)
      ctx.body = HIT
    })
    return new Koa().use(router.routes()).callback()
  },
  hono() {
    const app = new Hono()
    app.all('/login', ctx => ctx.text(HIT, 200, { 'x-hit': HIT }))
    return async (req, res) => {
      // As servers for fetch handlers make a Request of what came.
      const url = new URL(req.url?.startsWith('http') ? req.url : `http://localhost${req.url}`)
      const hasBody = req.method === 'TRACE' ? 'GET' : (req.method ?? 'GET')
      const answer = await app.fetch(new Request(url, { method: hasBody }))
      res.writeHead(answer.status, Object.fromEntries(answer.headers)).end()
    }
  },
  'node:http'() {
    return (req, res) => {
      const { pathname } = new URL(req.url ?? '/', 'http://localhost')
      if (pathname === '/login') res.setHeader('x-hit', HIT)
      res.end()
    }
  },
  'node:http, decoded'() {
    return (req, res) => {
      const [path = ''] = (req.url ?? '/').split('?')
      if (decodeURIComponent(path).replace(/\/+$/, '') === '/login') res.setHeader('x-hit', HIT)
      res.end()
    }
  },
}

const TARGETS = [
  '/login',
  '/login/',
  '/login//',
  '/LOGIN',
  '/Login/',
  '/%6cogin',
  '/%6Cogin',
  '/log%69n',
  '/./login',
  '/login/.',
  '/a/../login',
  '/a/%2e%2e/login',
  '/a/%2E./login',
  '/%2e/login',
  '/../login',
  '/a/b/../../login',
  '/login?x=1',
  '/login?',
  '/login#f',
  '/login/?x=/y',
  'http://x/login',
  'http://x/login/?y',
  'http://x/a/../login',
  '//login',
  '///login',
  '//x/login',
  '//x:1/%6cogin/',
  '///x/a/../login',
  '/\\x/login',
  '/\\/x\\login',
  '/login;a=b',
  '/login;',
  '/login%2f',
  '/login%2F',
  '/login%00',
  '/login%20',
  '/%2flogin',
  '/login/..;/login',
]
const METHODS = ['GET', 'POST', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'PUT']

const gate = createGate({
  config: configOf({
    policies: { login: perMinute(5) },
    rules: [ruleOf({ name: 'login', match: { path: '/login' }, charge: { policy: 'login' } })],
  }),
})

describe.each(Object.entries(FRAMEWORKS))('%s', (_, app) => {
  let server: Server
  beforeAll(async () => {
    server = createServer(await app())
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  })
  afterAll(() => void server.close())

  it('has no spelling of its route that the rule does not match', async () => {
    const hits: string[] = []
    for (const [method, target] of [
      ...TARGETS.map(target => ['GET', target] as const),
      ...METHODS.map(method => [method, '/login'] as const),
    ]) {
      if (!(await isHit(server, method, target))) continue
      hits.push(target)
      const [level] = gate.explain({ subject: 'ip:192.0.2.1', method, path: target }).levels
      expect(level?.rule, `${method} ${target}`).toBe('login')
    }
    expect(hits.length).toBeGreaterThan(5)
  })
})

/** Sent by hand: every client would tidy the target up. */
function isHit(server: Server, method: string, target: string): Promise<boolean> {
  const { port } = server.address() as AddressInfo
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.on('data', chunk => {
      text += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(text.includes(`x-hit: ${HIT}`)))
    socket.end(`${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
  })
}
