import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * A server that works on a number of requests at once, each for a fixed time; the others queue, even if their
 * client has left.
 */
export interface QueueingServer {
  readonly url: string
  /** How many requests have come so far. */
  arrived(): number
  /** Changes how many it works on at once. */
  setWorkers(count: number): void
  close(): void
}

export async function startQueueingServer(workers: number, serviceMs: number): Promise<QueueingServer> {
  const row: (() => void)[] = []
  let busy = 0
  let most = workers
  let arrived = 0
  const next = () => {
    while (busy < most && row.length > 0) {
      busy++
      row.shift()?.()
    }
  }
  const server = createServer((_req, res) => {
    arrived++
    row.push(() =>
      setTimeout(() => {
        busy--
        res.end('done')
        next()
      }, serviceMs),
    )
    next()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    arrived: () => arrived,
    setWorkers(count) {
      most = count
      next()
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
