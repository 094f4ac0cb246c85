import type { ServerResponse } from 'node:http'
import { Http2ServerResponse } from 'node:http2'

/**
 * Writes status and headers, given as alternating names and values. HTTP/2 has no reason phrase, and takes each
 * name once.
 */
export function writeHead(
  res: ServerResponse,
  status: number,
  reason: string,
  headers: readonly string[],
): void {
  if (!isHttp2(res)) return void res.writeHead(status, reason, headers as string[])
  const byName: Record<string, string | string[]> = {}
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = (headers[index] as string).toLowerCase()
    const value = headers[index + 1] as string
    if (name === 'connection') continue
    const before = byName[name]
    byName[name] = before === undefined ? value : [before, value].flat()
  }
  ;(res as unknown as Http2ServerResponse).writeHead(status, byName)
}

/** Whether it is a response of HTTP/2, which Node exposes in the same form. */
export function isHttp2(res: ServerResponse): boolean {
  return res instanceof (Http2ServerResponse as unknown as typeof ServerResponse)
}

/** Whether nobody is there to read it any more. */
export function isGone(res: ServerResponse): boolean {
  return isHttp2(res) ? (res as unknown as Http2ServerResponse).stream?.destroyed !== false : res.destroyed
}
