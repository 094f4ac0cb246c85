import { rateLimit } from 'headgate/node-http'
import { USER_HEADER } from '../rule.js'
import { headgateOptions } from './headgate.js'
import { listening } from './listening.js'

/** @type {import('node:http').RequestListener} */
const hello = (_, response) => {
  response.setHeader('Content-Length', 5)
  response.end('hello')
}

/** @param {import('../entries.js').Entry} entry @param {string} redisUrl @returns {Promise<number>} The port. */
export async function serveNodeHttp(entry, redisUrl) {
  if (entry.who === 'bare') return listening(hello)
  const options = await headgateOptions(entry, redisUrl)
  const limited = rateLimit({ ...options, subject: ({ headers }) => `user:${headers[USER_HEADER]}` })
  return listening(limited(hello))
}
