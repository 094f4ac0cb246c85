import { createHash } from 'node:crypto'
import { openSender } from '../clients.js'

/**
 * The Redis client that @upstash/ratelimit needs, over a socket instead of HTTP. Its scripts start with a flag of
 * Upstash's own server, which Redis refuses, so they run without that line and have the hash of the rest.
 *
 * @param {import('../clients.js').ClientKind} kind
 * @param {string} url
 */
export async function openUpstashClient(kind, url) {
  const send = await openSender(kind, url)
  /** The library's hash of a script → Redis's hash of it. @type {Map<string, string>} */
  const hashes = new Map()
  /** @param {string} hash @param {readonly string[]} keys @param {readonly unknown[]} args */
  const run = (hash, keys, args) => send('EVALSHA', hash, String(keys.length), ...keys, ...args.map(String))
  return {
    /** @param {string} hash @param {string[]} keys @param {unknown[]} args */
    async evalsha(hash, keys, args) {
      const known = hashes.get(hash)
      if (known === undefined) throw new Error('NOSCRIPT')
      return run(known, keys, args)
    },
    /** @param {string} script @param {string[]} keys @param {unknown[]} args */
    async eval(script, keys, args) {
      const hash = String(await send('SCRIPT', 'LOAD', script.replace(/^#!.*\n/, '')))
      hashes.set(createHash('sha1').update(script).digest('hex'), hash)
      return run(hash, keys, args)
    },
  }
}
