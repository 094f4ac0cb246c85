import type { IncomingMessage } from 'node:http'
import { headerTokens, headerValues } from '../http/raw-headers.js'

/** Whether a request is the handshake of a WebSocket, whole and alone. */
export function isWebSocket(req: IncomingMessage): boolean {
  const protocols = headerTokens(req, 'upgrade')
  return (
    req.method === 'GET' &&
    req.httpVersion === '1.1' &&
    headerTokens(req, 'connection').includes('upgrade') &&
    protocols.length === 1 &&
    protocols[0] === 'websocket' &&
    headerValues(req, 'sec-websocket-key').length === 1 &&
    headerValues(req, 'content-length').length === 0 &&
    headerValues(req, 'transfer-encoding').length === 0
  )
}
