import { openSender } from '../clients.js'

/** @typedef {import('./contestant.js').Setup} Setup */
/** @typedef {import('./contestant.js').Contestant} Contestant */

/** INCR and nothing else: the least a shared counter can cost. @param {Setup} setup @returns {Promise<Contestant>} */
export async function createIncr({ url, client, prefix }) {
  const send = await openSender(client, url)
  return { ask: key => send('INCR', `${prefix}:${key}`), admits: () => true }
}

/** A script that does nothing: what calling one costs. @param {Setup} setup @returns {Promise<Contestant>} */
export async function createEmptyScript({ url, client, prefix }) {
  const send = await openSender(client, url)
  const hash = String(await send('SCRIPT', 'LOAD', 'return 1'))
  return { ask: key => send('EVALSHA', hash, '1', `${prefix}:${key}`), admits: () => true }
}
