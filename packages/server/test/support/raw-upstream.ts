import { type AddressInfo, createServer, type Socket } from 'node:net'

/** An upstream that shows the very bytes it was sent. */
export interface RawUpstream {
  readonly url: string
  /** Everything received, one entry for each connection that sent something. */
  readonly received: string[]
  /** Answers every request from now on with this text; the default is an empty 200. */
  answerWith(text: string): void
  /** From now on takes requests and says nothing. */
  fallSilent(): void
  readonly sockets: ReadonlySet<Socket>
  close(): Promise<void>
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Starts it on a port of 127.0.0.1 that the system chooses. */
export async function startRawUpstream(): Promise<RawUpstream> {
  const received: string[] = []
  const sockets = new Set<Socket>()
  let answer: string | null = OK
  const server = createServer(socket => {
    sockets.add(socket)
    const index = received.length
    socket.on('data', chunk => {
      received[index] = (received[index] ?? '') + chunk.toString('latin1')
      if (answer !== null && isWhole(received[index])) socket.write(answer)
    })
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    sockets,
    answerWith: text => {
      answer = text
    },
    fallSilent: () => {
      answer = null
    },
    close: () =>
      new Promise(resolve => {
        for (const socket of sockets) socket.destroy()
        server.close(() => resolve())
      }),
  }
}

/** Good enough for what the tests send: a chunked body has its last chunk, any other arrives with its head. */
function isWhole(text: string): boolean {
  return /transfer-encoding: chunked/i.test(text) ? text.endsWith('0\r\n\r\n') : text.includes('\r\n\r\n')
}
