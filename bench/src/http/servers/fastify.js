import rateLimit from '@fastify/rate-limit'
import fastify from 'fastify'
import { rateLimit as headgate } from 'headgate/fastify'
import { openIoredis } from '../../redis/clients.js'
import { RULE, USER_HEADER } from '../rule.js'
import { createFlexible } from './flexible.js'
import { headgateOptions } from './headgate.js'

/** @param {import('../entries.js').Entry} entry @param {string} redisUrl @returns {Promise<number>} The port. */
export async function serveFastify(entry, redisUrl) {
  const { where, who, style } = entry
  const app = fastify()
  if (style !== undefined) {
    const options = await headgateOptions(entry, redisUrl)
    await app.register(headgate({ ...options, subject: ({ headers }) => `user:${headers[USER_HEADER]}` }))
  } else if (who === 'empty middleware') {
    app.addHook('onRequest', (_request, _reply, done) => done())
  } else if (who === 'flexible') {
    const consume = await createFlexible(entry, redisUrl)
    app.addHook('onRequest', async ({ headers }, reply) => {
      reply.headers(await consume(String(headers[USER_HEADER])))
    })
  } else if (who !== 'bare') {
    await app.register(rateLimit, {
      max: RULE.limit,
      timeWindow: RULE.windowSeconds * 1000,
      keyGenerator: request => String(request.headers[USER_HEADER]),
      ...(where === 'redis' && { redis: await openIoredis(redisUrl) }),
    })
  }
  app.get('/', async () => 'hello')
  await app.listen({ port: 0, host: '127.0.0.1' })
  return /** @type {import('node:net').AddressInfo} */ (app.server.address()).port
}
