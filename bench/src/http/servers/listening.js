import { createServer } from 'node:http'

/** Starts a server on a free port. @param {import('node:http').RequestListener} listener @returns {Promise<number>} The port. */
export function listening(listener) {
  return new Promise(resolve => {
    const server = createServer(listener).listen(0, '127.0.0.1', () => {
      resolve(/** @type {import('node:net').AddressInfo} */ (server.address()).port)
    })
  })
}
