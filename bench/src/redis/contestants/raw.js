import { openSender } from '../clients.js'

/** @typedef {import('./contestant.js').Setup} Setup */
/** @typedef {import('./contestant.js').Contestant} Contestant */

/** Sends only INCR: the lowest cost of a shared counter. @param {Setup} setup @returns {Promise<Contestant>} */
export async function createIncr({ url, client, prefix }) {
  const send = await openSender(client, url)
  return { ask: key => send('INCR', `${prefix}:${key}`), admits: () => true }
}

/** Calls a script that does nothing: the cost of a call. @param {Setup} setup @returns {Promise<Contestant>} */
export async function createEmptyScript({ url, client, prefix }) {
  const send = await openSender(client, url)
  const hash = String(await send('SCRIPT', 'LOAD', 'return 1'))
  return { ask: key => send('EVALSHA', hash, '1', `${prefix}:${key}`), admits: () => true }
}
