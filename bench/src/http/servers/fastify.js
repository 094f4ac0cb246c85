import rateLimit from '@fastify/rate-limit'
import fastify from 'fastify'
import { decisionHeaders, decisionProblem } from 'headgate'
import { openIoredis } from '../../redis/clients.js'
import { RULE, USER_HEADER } from '../rule.js'
import { createHeadgate } from './headgate.js'

/** @param {import('../entries.js').Entry} entry @param {string} redisUrl @returns {Promise<number>} The port. */
export async function serveFastify({ where, who }, redisUrl) {
  const app = fastify()
  if (who === 'headgate') {
    const limiter = await createHeadgate(where, redisUrl)
    app.addHook('onRequest', async (request, reply) => {
      const decision = await limiter.check(`user:${request.headers[USER_HEADER]}`, { policy: 'api' })
      for (const [name, value] of decisionHeaders(decision)) reply.header(name, value)
      if (decision.allowed) return
      const { status, headers, body } = decisionProblem(decision)
      for (const [name, value] of headers) reply.header(name, value)
      return reply.code(status).send(JSON.stringify(body))
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
