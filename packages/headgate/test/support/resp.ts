import { connect } from 'node:net'

/**
 * A reply of Redis, in RESP2. An error reply is an Error value, not a rejection, because assertions want to look at
 * it. The promise rejects only if no answer came.
 */
export type Reply = string | number | null | Error | Reply[]

/** One socket; commands may be sent without waiting for earlier answers. */
export interface RespConnection {
  send(...args: (string | number)[]): Promise<Reply>
  close(): void
}

interface Waiting {
  resolve(reply: Reply): void
  reject(reason: Error): void
}

/** Connects to a server on this machine, independently of the client libraries under test. */
export function openConnection(port: number, options: { timeoutMs?: number } = {}): Promise<RespConnection> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const waiting: Waiting[] = []
  let received: Buffer = Buffer.alloc(0)

  const failAll = (reason: Error) => {
    for (const { reject } of waiting.splice(0)) reject(reason)
  }
  socket.on('error', failAll)
  socket.on('close', () => failAll(new Error(`Redis on port ${port} closed the connection`)))
  socket.setTimeout(options.timeoutMs ?? 10_000, () => {
    // An idle socket is fine; one that owes an answer is not.
    if (waiting.length > 0) socket.destroy(new Error(`Redis on port ${port} did not answer in time`))
  })
  socket.on('data', chunk => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    for (let parsed = parseReply(received, 0); parsed; parsed = parseReply(received, 0)) {
      received = received.subarray(parsed.end)
      waiting.shift()?.resolve(parsed.reply)
    }
  })

  const connection: RespConnection = {
    send: (...args) =>
      new Promise((resolve, reject) => {
        if (!socket.writable) return reject(new Error(`The connection to port ${port} is closed`))
        waiting.push({ resolve, reject })
        socket.write(encodeCommand(args))
      }),
    close: () => socket.destroy(),
  }
  return new Promise((resolve, reject) => {
    socket.once('connect', () => resolve(connection))
    socket.once('close', () => reject(new Error(`Redis on port ${port} closed the connection`)))
    socket.once('error', reject)
  })
}

/** Sends one command over a connection of its own. */
export async function sendCommand(port: number, ...args: (string | number)[]): Promise<Reply> {
  const connection = await openConnection(port)
  try {
    return await connection.send(...args)
  } finally {
    connection.close()
  }
}

function encodeCommand(args: (string | number)[]): string {
  const parts = args.map(arg => `$${Buffer.byteLength(String(arg))}\r\n${arg}\r\n`)
  return `*${args.length}\r\n${parts.join('')}`
}

interface Parsed {
  readonly reply: Reply
  /** Where the next reply begins. */
  readonly end: number
}

/** Parses the reply that begins at `start`, or returns undefined if part of it has not arrived yet. */
function parseReply(bytes: Buffer, start: number): Parsed | undefined {
  const lineEnd = bytes.indexOf('\r\n', start)
  if (lineEnd === -1) return undefined
  const text = bytes.toString('utf8', start + 1, lineEnd)
  const end = lineEnd + 2
  switch (bytes.toString('latin1', start, start + 1)) {
    case '+':
      return { reply: text, end }
    case '-':
      return { reply: new Error(text), end }
    case ':':
      return { reply: Number(text), end }
    case '$':
      return parseBulk(bytes, end, Number(text))
    case '*':
      return parseArray(bytes, end, Number(text))
    default:
      throw new Error(`Not RESP2: ${bytes.toString('latin1', start, lineEnd)}`)
  }
}

function parseBulk(bytes: Buffer, start: number, length: number): Parsed | undefined {
  if (length === -1) return { reply: null, end: start }
  const end = start + length + 2
  if (bytes.length < end) return undefined
  return { reply: bytes.toString('utf8', start, start + length), end }
}

function parseArray(bytes: Buffer, start: number, length: number): Parsed | undefined {
  if (length === -1) return { reply: null, end: start }
  const items: Reply[] = []
  let end = start
  while (items.length < length) {
    const item = parseReply(bytes, end)
    if (!item) return undefined
    items.push(item.reply)
    end = item.end
  }
  return { reply: items, end }
}
