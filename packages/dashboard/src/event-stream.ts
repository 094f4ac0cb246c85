/** Server-sent events read from a fetch, since `EventSource` cannot send a token. */
import { request } from './api.js'

/** One event: its name and its data. */
export interface ServerEvent {
  readonly name: string
  readonly data: string
}

/** Yields the events of a stream, until it ends or `signal` is aborted. */
export async function* readEvents(path: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  const response = await request(path, { signal, headers: { Accept: 'text/event-stream' } })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (reader !== undefined) {
    const { done, value } = await reader.read()
    if (done) return
    text += value
    const blocks = text.split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) {
      const event = parseEvent(block)
      if (event !== null) yield event
    }
  }
}

/** Returns the event in a block of lines, or null for comments and settings. */
function parseEvent(block: string): ServerEvent | null {
  let name = 'message'
  const data: string[] = []
  for (const line of block.split('\n')) {
    if (line.startsWith('event: ')) name = line.slice('event: '.length)
    if (line.startsWith('data: ')) data.push(line.slice('data: '.length))
  }
  return data.length === 0 ? null : { name, data: data.join('\n') }
}
