/** Web servers that answer `hello`: each framework bare, with its usual limiter, and with our adapter. */
import { createServer } from 'node:http'
import fastifyRateLimit from '@fastify/rate-limit'
import { serve } from '@hono/node-server'
import express from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import fastify from 'fastify'
import { createLimiter, slidingWindowCounter } from 'headgate'
import { rateLimit as headgateExpress } from 'headgate/express'
import { rateLimit as headgateFastify } from 'headgate/fastify'
import { rateLimit as headgateHono } from 'headgate/hono'
import { redisStore } from 'headgate/redis'
import { Hono } from 'hono'
import { RedisStore as HonoRedisStore, rateLimiter as honoRateLimiter } from 'hono-rate-limiter'
import { Redis } from 'ioredis'
import { RedisStore } from 'rate-limit-redis'
import { createClient } from 'redis'
import { USER_HEADER } from './harness/http.js'
import { openClient } from './harness/redis-server.js'

/** @typedef {'express' | 'fastify' | 'hono'} Framework */
/** @typedef {{ framework: Framework, limiter: 'none' | 'usual' | 'headgate', redis: boolean, headers: 'legacy' | 'none' }} Entry */

/** No caller reaches the limit, and the window outlasts the run. */
const RULE = { limit: 100_000_000, windowSeconds: 86_400 }
const WINDOW_MS = RULE.windowSeconds * 1000

/** Starts a server and returns its port. @param {Entry} entry @param {string} redisUrl @returns {Promise<number>} */
export function startServer(entry, redisUrl) {
  return { express: startExpress, fastify: startFastify, hono: startHono }[entry.framework](entry, redisUrl)
}

/** @param {Entry} entry @param {string} redisUrl */
async function startExpress({ limiter, redis, headers }, redisUrl) {
  const app = express()
  const subject = (/** @type {import('express').Request} */ request) => String(request.get(USER_HEADER))
  if (limiter === 'headgate') {
    const options = await headgateOptions(redis, redisUrl)
    app.use(headgateExpress({ ...options, headers, subject: request => `user:${subject(request)}` }))
  } else if (limiter === 'usual') {
    const client = redis ? await openClient(redisUrl) : undefined
    app.use(
      expressRateLimit({
        windowMs: WINDOW_MS,
        limit: RULE.limit,
        legacyHeaders: headers === 'legacy',
        keyGenerator: subject,
        ...(client && {
          store: new RedisStore({
            sendCommand: (...words) => /** @type {Promise<any>} */ (client.sendCommand(words)),
          }),
        }),
      }),
    )
  }
  app.get('/', (_, response) => void response.send('hello'))
  const server = createServer(app)
  await new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  return portOf(server)
}

/** @param {Entry} entry @param {string} redisUrl */
async function startFastify({ limiter, redis, headers }, redisUrl) {
  const app = fastify()
  if (limiter === 'headgate') {
    const options = await headgateOptions(redis, redisUrl)
    await app.register(
      headgateFastify({ ...options, headers, subject: request => `user:${request.headers[USER_HEADER]}` }),
    )
  } else if (limiter === 'usual') {
    const isShown = headers === 'legacy'
    await app.register(fastifyRateLimit, {
      max: RULE.limit,
      timeWindow: WINDOW_MS,
      keyGenerator: request => String(request.headers[USER_HEADER]),
      addHeaders: {
        'x-ratelimit-limit': isShown,
        'x-ratelimit-remaining': isShown,
        'x-ratelimit-reset': isShown,
      },
      // It knows no other client.
      ...(redis && { redis: new Redis(redisUrl) }),
    })
  }
  app.get('/', async () => 'hello')
  await app.listen({ port: 0, host: '127.0.0.1' })
  return portOf(app.server)
}

/** @param {Entry} entry @param {string} redisUrl @returns {Promise<number>} */
async function startHono({ limiter, redis, headers }, redisUrl) {
  const app = new Hono()
  if (limiter === 'headgate') {
    const options = await headgateOptions(redis, redisUrl)
    app.use(
      headgateHono({ ...options, headers, subject: context => `user:${context.req.header(USER_HEADER)}` }),
    )
  } else if (limiter === 'usual') {
    app.use(
      honoRateLimiter({
        windowMs: WINDOW_MS,
        limit: RULE.limit,
        keyGenerator: context => String(context.req.header(USER_HEADER)),
        ...(redis && { store: new HonoRedisStore({ client: await honoClient(redisUrl) }) }),
      }),
    )
  } else {
    // Hono has a shorter path for an app of one handler, which any middleware leaves.
    app.use(async (_, next) => next())
  }
  app.get('/', context => context.text('hello'))
  return new Promise(resolve => {
    serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => resolve(port))
  })
}

/** Returns a client with the names of methods that its store expects. @param {string} redisUrl */
async function honoClient(redisUrl) {
  const client = await openClient(redisUrl)
  return {
    scriptLoad: (/** @type {string} */ script) => client.scriptLoad(script),
    evalsha: (/** @type {string} */ sha, /** @type {string[]} */ keys, /** @type {unknown[]} */ args) =>
      /** @type {Promise<any>} */ (
        client.sendCommand(['EVALSHA', sha, String(keys.length), ...keys, ...args.map(String)])
      ),
    decr: (/** @type {string} */ key) => client.decr(key),
    del: (/** @type {string} */ key) => client.del(key),
  }
}

/** @param {boolean} redis @param {string} redisUrl */
async function headgateOptions(redis, redisUrl) {
  const store = redis
    ? redisStore(createClient({ url: redisUrl }), { prefix: 'http', deadlineMs: 5_000 })
    : undefined
  await store?.ready()
  const limit = slidingWindowCounter({ limit: RULE.limit, window: `${RULE.windowSeconds}s` })
  const limiter = createLimiter({ ...(store && { store }), policies: { api: limit } })
  return /** @type {const} */ ({ limiter, policy: 'api' })
}

/** @param {import('node:http').Server | import('node:http2').Http2Server} server */
function portOf(server) {
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port
}
