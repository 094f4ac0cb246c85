import { createServer } from 'node:net'

// A cluster node also listens on its port + 10000. This range keeps both below 32768, where Linux starts to assign
// ports for outgoing connections; such a connection could otherwise take a port between our check and its use.
const LOWEST = 10_240
const HIGHEST = 22_700
const BUS_OFFSET = 10_000

/**
 * Finds a port on 127.0.0.1 that is free now, and whose cluster bus port is free too. Another process may still be
 * faster, so whoever listens must be ready to try once more.
 */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST))
    if ((await isFree(port)) && (await isFree(port + BUS_OFFSET))) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
