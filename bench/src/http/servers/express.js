import express from 'express'
import { rateLimit } from 'express-rate-limit'
import { rateLimit as headgate } from 'headgate/express'
import { RedisStore } from 'rate-limit-redis'
import { openSender } from '../../redis/clients.js'
import { RULE, USER_HEADER } from '../rule.js'
import { createFlexible } from './flexible.js'
import { headgateOptions } from './headgate.js'
import { listening } from './listening.js'

/** @param {import('../entries.js').Entry} entry @param {string} redisUrl @returns {Promise<number>} The port. */
export async function serveExpress(entry, redisUrl) {
  const app = express()
  const middleware = await middlewareOf(entry, redisUrl)
  if (middleware !== null) app.use(middleware)
  app.get('/', (_, response) => {
    response.send('hello')
  })
  return listening(app)
}

/** @param {import('../entries.js').Entry} entry @param {string} redisUrl */
async function middlewareOf(entry, redisUrl) {
  const { where, who, style } = entry
  if (who === 'bare') return null
  if (who === 'empty middleware') return nothing
  if (style !== undefined) {
    const options = await headgateOptions(entry, redisUrl)
    return headgate({ ...options, subject: request => `user:${request.get(USER_HEADER)}` })
  }
  if (who === 'flexible') return flexibly(await createFlexible(entry, redisUrl))
  const sendCommand =
    where === 'redis' && (await openSender(who === 'usual' ? 'ioredis' : 'node-redis, tuned', redisUrl))
  return rateLimit({
    windowMs: RULE.windowSeconds * 1000,
    limit: RULE.limit,
    keyGenerator: request => String(request.get(USER_HEADER)),
    ...(sendCommand && { store: new RedisStore({ sendCommand: (...words) => sendCommand(...words) }) }),
  })
}

/** @type {import('express').RequestHandler} */
const nothing = (request, _, next) => {
  request.get(USER_HEADER)
  next()
}

/** @param {Awaited<ReturnType<typeof createFlexible>>} consume @returns {import('express').RequestHandler} */
function flexibly(consume) {
  return (request, response, next) => {
    consume(String(request.get(USER_HEADER))).then(
      headers => {
        response.set(headers)
        next()
      },
      () => response.sendStatus(429),
    )
  }
}
