/** Real servers with the same routes that differ in how they read a path. A header says which route was hit. */
import type { RequestListener } from 'node:http'
import { posix } from 'node:path'
import KoaRouter from '@koa/router'
import express from 'express'
import fastify, { type FastifyServerOptions } from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'

export const HIT = 'x-hit'

/** The routes of every server, and a plain path for each. */
export const ROUTES = {
  '/login': '/login',
  '/token': '/token',
  '/health': '/health',
  '/users/:id': '/users/42',
  '/users/:id/export': '/users/42/export',
  '/search/:query': '/search/shoes',
  '/Keys/:key/uses': '/Keys/42/uses',
  '/public/*': '/public/logo',
} as const

export type Route = keyof typeof ROUTES
const NAMES = Object.keys(ROUTES) as Route[]

export const SERVERS: Record<string, () => Promise<RequestListener> | RequestListener> = {
  express: () => expressApp({}),
  'express, strict and case-sensitive': () => expressApp({ strict: true, caseSensitive: true }),
  fastify: () => fastifyApp({}),
  'fastify, ignoring case and slashes at the end': () =>
    fastifyApp({ caseSensitive: false, ignoreTrailingSlash: true }),
  'fastify, ignoring doubled slashes': () => fastifyApp({ ignoreDuplicateSlashes: true }),
  'fastify, with semicolons': () => fastifyApp({ caseSensitive: false }, { useSemicolonDelimiter: true }),
  koa: () => koaApp({}),
  'koa, strict and case-sensitive': () => koaApp({ strict: true, sensitive: true }),
  hono: () => honoApp(true),
  'hono, not strict': () => honoApp(false),
  'node:http, by URL': () => byHand(target => new URL(target, 'http://localhost').pathname),
  'node:http, decoded': () => byHand(target => decodeURIComponent(withoutQuery(target))),
  'node:http, decoded twice': () =>
    byHand(target => decodeURIComponent(decodeURIComponent(withoutQuery(target)))),
  'node:http, decoded and normalised': () =>
    byHand(target => posix.normalize(decodeURIComponent(withoutQuery(target)))),
  'node:http, keeping what follows #': () => byHand(withoutQuery),
  'node:http, dropping path parameters': () =>
    byHand(target => posix.normalize(decodeURIComponent(withoutQuery(target).replace(/;[^/]*/g, '')))),
  'node:http, trimmed': () => byHand(target => decodeURIComponent(withoutQuery(target)).trim()),
  'node:http, as C reads strings': () =>
    byHand(target => decodeURIComponent(withoutQuery(target)).replace(/\0.*$/s, '')),
  'node:http, as Windows opens files': () =>
    byHand(target => asWindows(decodeURIComponent(withoutQuery(target)))),
}

function expressApp(options: { strict?: boolean; caseSensitive?: boolean }): RequestListener {
  const app = express()
  // Undecodable paths are part of the test, so they need not be logged.
  app.set('env', 'test')
  const router = express.Router(options)
  for (const name of NAMES)
    router.all(name.replace('*', '*rest'), (_req, res) => void res.set(HIT, name).send(name))
  app.use(router)
  return app
}

async function fastifyApp(
  routerOptions: NonNullable<FastifyServerOptions['routerOptions']>,
  options: FastifyServerOptions = {},
): Promise<RequestListener> {
  const app = fastify({ ...options, routerOptions })
  for (const name of NAMES) app.all(name, (_req, reply) => reply.header(HIT, name).send(name))
  await app.ready()
  return (req, res) => app.routing(req, res)
}

function koaApp(options: { strict?: boolean; sensitive?: boolean }): RequestListener {
  const router = new KoaRouter(options)
  for (const name of NAMES) {
    router.all(name.replace('*', '{*rest}'), ctx => {
      ctx.set(HIT, name)
      ctx.body = name
    })
  }
  const app = new Koa()
  app.silent = true
  return app.use(router.routes()).callback()
}

function honoApp(strict: boolean): RequestListener {
  const app = new Hono({ strict })
  for (const name of NAMES) app.all(name, ctx => ctx.text(name, 200, { [HIT]: name }))
  return async (req, res) => {
    // As servers for fetch handlers build a Request from the target.
    const url = new URL(req.url?.startsWith('http') ? req.url : `http://localhost${req.url}`)
    const answer = await app.fetch(new Request(url))
    res.writeHead(answer.status, Object.fromEntries(answer.headers)).end()
  }
}

/** As written by somebody who needs no framework. */
function byHand(pathOf: (target: string) => string): RequestListener {
  return (req, res) => {
    try {
      const path = pathOf((req.url ?? '/').replace(/^http:\/\/[^/?#]*/, ''))
      const name = NAMES.find(name => patternOf(name).test(path.length > 1 ? path.replace(/\/+$/, '') : path))
      if (name !== undefined) res.setHeader(HIT, name)
    } catch {
      res.statusCode = 400
    }
    res.end()
  }
}

function patternOf(name: Route): RegExp {
  return new RegExp(`^${name.replaceAll(/:\w+/g, '[^/]+').replace('/*', '(?:/.*)?')}$`)
}

/** Full stops and spaces behind a name, and the names of its streams, are not part of it; then dots are resolved. */
function asWindows(path: string): string {
  const opened = path
    .split('/')
    .map(segment =>
      /^\.{1,2}$/.test(segment) ? segment : segment.replace(/:[^:]*:\$.*$/, '').replace(/[. ]+$/, ''),
    )
  return posix.normalize(opened.join('/'))
}

function withoutQuery(target: string): string {
  return target.split('?')[0] ?? ''
}
