import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ServerUnderTest } from '../../src/testing/adapters/adapter-law.ts'

/** Starts a Node server on a free port. */
export async function listening(server: Server): Promise<ServerUnderTest> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return underTest(server)
}

/** Wraps a server that already listens. */
export function underTest(server: Server): ServerUnderTest {
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.closeAllConnections()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
}

/** Reads a body to its end. */
export async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
