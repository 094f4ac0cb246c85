import { type AddressInfo, createServer, type Socket } from 'node:net'

/** An upstream that shows the exact bytes it received. */
export interface RawUpstream {
  readonly url: string
  /** Everything received, one entry for each connection that sent something. */
  readonly received: string[]
  /** Answers every request from now on with this text; the default is an empty 200. */
  answerWith(text: string): void
  /** Passes every request from now on to a function, with the connection to answer on. */
  answerBy(respond: (request: string, socket: Socket) => void): void
  /** From now on accepts requests and does not answer. */
  fallSilent(): void
  readonly sockets: ReadonlySet<Socket>
  close(): Promise<void>
}

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Starts it on a free port of 127.0.0.1. */
export async function startRawUpstream(): Promise<RawUpstream> {
  const received: string[] = []
  const sockets = new Set<Socket>()
  let respond = (_request: string, socket: Socket): unknown => socket.write(OK)
  const server = createServer(socket => {
    sockets.add(socket)
    let index: number | undefined
    let unanswered = ''
    socket.on('data', chunk => {
      const text = chunk.toString('latin1')
      index ??= received.length
      received[index] = (received[index] ?? '') + text
      unanswered += text
      if (!isWhole(unanswered)) return
      respond(unanswered, socket)
      unanswered = ''
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
      respond = (_request, socket) => socket.write(text)
    },
    answerBy: given => {
      respond = given
    },
    fallSilent: () => {
      respond = () => {}
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
