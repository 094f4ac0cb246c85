import { rateLimit } from 'headgate/koa'
import Koa from 'koa'
import { USER_HEADER } from '../rule.js'
import { headgateOptions } from './headgate.js'
import { listening } from './listening.js'

/** @param {import('../entries.js').Entry} entry @param {string} redisUrl @returns {Promise<number>} The port. */
export async function serveKoa(entry, redisUrl) {
  const app = new Koa()
  if (entry.who !== 'bare') {
    const options = await headgateOptions(entry, redisUrl)
    app.use(rateLimit({ ...options, subject: context => `user:${context.get(USER_HEADER)}` }))
  }
  app.use(context => {
    context.body = 'hello'
  })
  return listening(app.callback())
}
