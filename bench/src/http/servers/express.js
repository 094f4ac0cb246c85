import express from 'express'
import { rateLimit } from 'express-rate-limit'
import { decisionHeaders, decisionProblem } from 'headgate'
import { RedisStore } from 'rate-limit-redis'
import { openSender } from '../../redis/clients.js'
import { RULE, USER_HEADER } from '../rule.js'
import { createHeadgate } from './headgate.js'

/** @typedef {import('node:http').IncomingMessage & { get(name: string): string | undefined }} Request */
/** @typedef {import('node:http').ServerResponse & { send(body: string): void, status(code: number): Response, json(body: unknown): void }} Response */

/** @param {import('../entries.js').Entry} entry @param {string} redisUrl @returns {Promise<number>} The port. */
export async function serveExpress(entry, redisUrl) {
  const app = express()
  const middleware = await middlewareOf(entry, redisUrl)
  if (middleware !== null) app.use(middleware)
  app.get('/', (/** @type {unknown} */ _request, /** @type {Response} */ response) => {
    response.send('hello')
  })
  return new Promise(resolve => {
    const server = app.listen(0, '127.0.0.1', () => {
      resolve(/** @type {import('node:net').AddressInfo} */ (server.address()).port)
    })
  })
}

/** @param {import('../entries.js').Entry} entry @param {string} redisUrl */
async function middlewareOf({ where, who }, redisUrl) {
  if (who === 'bare') return null
  if (who === 'headgate') {
    const limiter = await createHeadgate(where, redisUrl)
    return async (
      /** @type {Request} */ request,
      /** @type {Response} */ response,
      /** @type {() => void} */ next,
    ) => {
      const decision = await limiter.check(`user:${request.get(USER_HEADER)}`, { policy: 'api' })
      for (const [name, value] of decisionHeaders(decision)) response.setHeader(name, value)
      if (decision.allowed) return next()
      const { status, headers, body } = decisionProblem(decision)
      for (const [name, value] of headers) response.setHeader(name, value)
      response.status(status).json(body)
    }
  }
  const sendCommand =
    where === 'redis' && (await openSender(who === 'usual' ? 'ioredis' : 'node-redis, tuned', redisUrl))
  return rateLimit({
    windowMs: RULE.windowSeconds * 1000,
    limit: RULE.limit,
    keyGenerator: request => String(request.get(USER_HEADER)),
    ...(sendCommand && { store: new RedisStore({ sendCommand: (...words) => sendCommand(...words) }) }),
  })
}
