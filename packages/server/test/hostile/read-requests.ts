/** A request as a strict server would read it. */
export interface ReadRequest {
  readonly line: string
  /** Names in lower case, in the order received. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

/**
 * Parses the bytes of a connection as a strict HTTP/1.1 server would: an oracle that shares no code with the
 * gateway. Throws for anything but one valid request after the other.
 */
export function readRequests(bytes: string): ReadRequest[] {
  const requests: ReadRequest[] = []
  let rest = bytes
  while (rest !== '') {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd === -1) throw new Error(`no end of the head in ${JSON.stringify(rest.slice(0, 80))}`)
    const [line = '', ...fields] = rest.slice(0, headEnd).split('\r\n')
    if (!/^[A-Z-]+ \/[^ ]* HTTP\/1\.1$/.test(line)) throw new Error(`request line ${JSON.stringify(line)}`)
    const headers = fields.map(readField)
    const { body, length } = readBody(headers, rest.slice(headEnd + 4))
    requests.push({ line, headers, body })
    rest = rest.slice(headEnd + 4 + length)
  }
  return requests
}

function readField(field: string): readonly [string, string] {
  const found = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+): ?(.*)$/.exec(field)
  if (found === null) throw new Error(`header ${JSON.stringify(field)}`)
  return [(found[1] as string).toLowerCase(), found[2] as string]
}

function readBody(headers: ReadRequest['headers'], rest: string): { body: string; length: number } {
  const valuesOf = (wanted: string) => headers.flatMap(([name, value]) => (name === wanted ? [value] : []))
  const lengths = valuesOf('content-length')
  const codings = valuesOf('transfer-encoding')
  if (lengths.length + codings.length > 1) throw new Error(`framed twice: ${[...lengths, ...codings]}`)
  if (codings.length === 1) {
    if (codings[0] !== 'chunked') throw new Error(`transfer coding ${codings[0]}`)
    return readChunks(rest)
  }
  const length = lengths[0] ?? '0'
  if (!/^\d+$/.test(length)) throw new Error(`content-length ${length}`)
  return { body: rest.slice(0, Number(length)), length: Number(length) }
}

function readChunks(rest: string): { body: string; length: number } {
  let body = ''
  let at = 0
  for (;;) {
    const size = /^([0-9a-f]{1,8})\r\n/i.exec(rest.slice(at, at + 12))
    // It broke off, which is how an unfinished body must look.
    if (size === null) return { body, length: rest.length }
    const bytes = Number.parseInt(size[1] as string, 16)
    at += size[0].length
    body += rest.slice(at, at + bytes)
    at += bytes + 2
    if (bytes === 0) return { body, length: at }
  }
}
