import { serve } from '@hono/node-server'
import { rateLimit as headgate } from 'headgate/hono'
import { Hono } from 'hono'
import { RedisStore, rateLimiter } from 'hono-rate-limiter'
import { openSender } from '../../redis/clients.js'
import { RULE, USER_HEADER } from '../rule.js'
import { headgateOptions } from './headgate.js'

/** @param {import('../entries.js').Entry} entry @param {string} redisUrl @returns {Promise<number>} The port. */
export async function serveHono(entry, redisUrl) {
  const app = new Hono()
  const middleware = await middlewareOf(entry, redisUrl)
  if (middleware !== null) app.use(middleware)
  app.get('/', context => context.text('hello'))
  return new Promise(resolve => {
    serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => resolve(port))
  })
}

/** @param {import('../entries.js').Entry} entry @param {string} redisUrl @returns {Promise<import('hono').MiddlewareHandler | null>} */
async function middlewareOf(entry, redisUrl) {
  const { where, who, style } = entry
  if (who === 'bare') return null
  if (who === 'empty middleware') {
    return async (context, next) => {
      context.req.header(USER_HEADER)
      await next()
    }
  }
  if (style !== undefined) {
    const options = await headgateOptions(entry, redisUrl)
    return headgate({ ...options, subject: context => `user:${context.req.header(USER_HEADER)}` })
  }
  return rateLimiter({
    windowMs: RULE.windowSeconds * 1000,
    limit: RULE.limit,
    keyGenerator: context => String(context.req.header(USER_HEADER)),
    ...(where === 'redis' && { store: new RedisStore({ client: await clientOf(who, redisUrl) }) }),
  })
}

/** Creates the client that its Redis store expects. @param {string} who @param {string} redisUrl */
async function clientOf(who, redisUrl) {
  const send = await openSender(who === 'usual' ? 'ioredis' : 'node-redis, tuned', redisUrl)
  return {
    /** @param {string} script */
    scriptLoad: script => send('SCRIPT', 'LOAD', script),
    /** @param {string} sha @param {string[]} keys @param {unknown[]} args */
    evalsha: (sha, keys, args) => send('EVALSHA', sha, String(keys.length), ...keys, ...args.map(String)),
    /** @param {string} key */
    decr: key => send('DECR', key),
    /** @param {string} key */
    del: key => send('DEL', key),
  }
}
