/**
 * Sends a single request on a connection of its own, including what `fetch` rejects: HEAD with a body, upgrades,
 * half a body.
 */
import { same } from '../laws/law.js'

export interface RequestToSend {
  readonly path?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface ReceivedResponse {
  readonly status: number
  readonly body: string
  /** Undefined for a header that was not sent. */
  header(name: string): string | undefined
}

/** How long anything here may take. */
const PATIENCE_MS = 10_000
/** A sixteenth of what is announced, and four seconds of sending: some servers keep reading for half a second. */
const MAX_UNWANTED_BYTES = 64 * 1024 ** 2

// Imported on use, because the rest of `headgate/testing` also runs without `node:http`.
const nodeHttp = () => import('node:http')
const nodeNet = () => import('node:net')

export async function send(url: string, asked: RequestToSend = {}): Promise<ReceivedResponse> {
  const { request } = await nodeHttp()
  const { path = '/hello', method = 'GET', headers = {}, body } = asked
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const timeout = PATIENCE_MS
    const options = { method, path, agent: false, timeout, headers: { ...headers, ...length } } as const
    const sent = request(url, options, response => {
      let text = ''
      response.setEncoding('utf8').on('data', chunk => {
        text += chunk
      })
      response.on('error', reject).on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          body: text,
          header: name => response.headers[name.toLowerCase()]?.toString(),
        }),
      )
    })
    sent.on('timeout', () => sent.destroy(new Error(`${method} ${path}: no answer in ${PATIENCE_MS} ms`)))
    sent.on('error', reject).end(body)
  })
}

/** A request of which half the body has been sent. */
export interface Begun {
  /** Sends the rest; resolves with the answer. */
  finish(): Promise<Pick<ReceivedResponse, 'status'>>
  /** Breaks the connection off. */
  abandon(): void
}

export async function beginRequest(url: string): Promise<Begun> {
  const { request } = await nodeHttp()
  const sent = request(url, {
    method: 'POST',
    path: '/hello',
    agent: false,
    timeout: PATIENCE_MS,
    headers: { 'content-length': '4', 'content-type': 'application/octet-stream' },
  })
  const answered = new Promise<Pick<ReceivedResponse, 'status'>>((resolve, reject) => {
    sent.on('error', reject).on('response', response => {
      response.resume().on('end', () => resolve({ status: response.statusCode ?? 0 }))
    })
  })
  answered.catch(() => {})
  await new Promise<void>(resolve => sent.write('he', () => resolve()))
  return {
    finish() {
      sent.end('ad')
      return answered
    },
    abandon: () => void sent.destroy(),
  }
}

/** Returns the statuses of several requests, one after the other. */
export async function statuses(url: string, asked: readonly RequestToSend[]): Promise<number[]> {
  const found: number[] = []
  for (const one of asked) found.push((await send(url, one)).status)
  return found
}

/**
 * Announces a gigabyte, sends a little of it, and keeps sending after the answer. Resolves with the first line of
 * the answer when the server has closed the connection.
 */
export async function sendEndlessBody(url: string): Promise<string> {
  const { connect } = await nodeNet()
  const { hostname, port, host } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) })
    const chunk = Buffer.alloc(16 * 1024, 'x')
    let answer = ''
    let sentBytes = 0
    const more = () => {
      sentBytes += chunk.length
      if (sentBytes > MAX_UNWANTED_BYTES)
        socket.destroy(new Error(`${sentBytes} bytes of a body were read that nobody wants`))
      // A chunk a millisecond: some servers close half a second after their answer, and a client as quick as it can be
      // sends most of its gigabyte in that time.
      else if (!socket.destroyed) socket.write(chunk, () => setTimeout(more, 1))
    }
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error('not closed after a rejection')))
    socket.setEncoding('latin1').on('data', text => {
      if (answer === '') more()
      answer += text
    })
    // The server may close while data is on its way to it.
    socket.on('error', error => (answer === '' || !('code' in error) ? reject(error) : undefined))
    socket.on('close', () => resolve(answer.split('\r\n')[0] ?? ''))
    const head = [`POST /hello HTTP/1.1`, `Host: ${host}`, `Content-Length: ${1024 ** 3}`]
    socket.write(`${head.join('\r\n')}\r\n\r\nhello`)
  })
}

/** Throws unless these headers are all present, or all absent. */
export function sameHeaders(answer: ReceivedResponse, names: readonly string[], isThere: boolean): void {
  for (const name of names) same(answer.header(name) !== undefined, isThere, name)
}
