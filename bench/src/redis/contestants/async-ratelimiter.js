import AsyncRateLimiter from 'async-ratelimiter'
import { openIoredis, openSender } from '../clients.js'

/**
 * The log of koa-ratelimit: a sorted set with an entry for each request. It is written for ioredis; over node-redis its
 * own script is sent by hash.
 *
 * @param {import('./contestant.js').Setup} setup
 * @returns {Promise<import('./contestant.js').Contestant>}
 */
export async function createAsyncRateLimiter({ url, client, rules, prefix }) {
  const [{ limit, windowSeconds }] = rules
  const db = client === 'ioredis' ? await openIoredis(url) : await scriptOver(client, url)
  const limiter = new AsyncRateLimiter({
    // It uses only its own command of a client.
    db: /** @type {any} */ (db),
    namespace: prefix,
    max: limit,
    duration: windowSeconds * 1000,
  })
  return { ask: id => limiter.get({ id }), admits: ({ remaining }) => remaining > 0 }
}

/** @param {import('../clients.js').ClientKind} client @param {string} url */
async function scriptOver(client, url) {
  const send = await openSender(client, url)
  // Its types omit the script that it defines on clients.
  const { defineCommand } = /** @type {any} */ (AsyncRateLimiter)
  const { lua } = defineCommand.ratelimiter
  const sha = await send('SCRIPT', 'LOAD', lua)
  return {
    /** @param {(string | number)[]} words */
    ratelimiter: (...words) => send('EVALSHA', sha, '1', ...words.map(String)),
  }
}
