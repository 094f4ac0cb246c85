/** Where a server logs: lines for people, or JSON for machines, one object per line. */
import type { Logger } from 'headgate'
import { cleanText } from './clean-text.js'
import type { LineFields, WriteLine } from './write-line.js'

export type LogFormat = 'text' | 'json'

export interface ServerLog {
  readonly log: WriteLine
  /** For the library. */
  readonly logger: Logger
  access(entry: AccessEntry): void
}

/** One line of the access log: a request that has ended. */
export interface AccessEntry {
  /** Of the request: from the client, if it sent one, or else ours. */
  readonly id: string | null
  /** The client, behind trusted proxies. */
  readonly client: string | null
  readonly method: string
  /** Without the query, which may contain secrets. */
  readonly path: string
  readonly status: number
  readonly durationMs: number
  readonly upstream: string | null
  /** Of a denial, by which operators find it. */
  readonly reference: string | null
}

/** The part of a terminal that lines are written to. */
interface Printer {
  print(text: string): void
  /** Bytes that were printed and that nobody has read yet. */
  readonly unreadBytes: number
}

/** A reader that stalls must not make the server grow: beyond this, lines are left out. */
const MOST_UNREAD_BYTES = 16 * 2 ** 20

/** In case one is ever among the fields. */
const SECRET = /^(?:secret|token|password|authorization|cookie|apikey)$/i
/** `worker` is the number of the writing worker, for logs of several; null if there is only one process. */
export function createServerLog(
  format: LogFormat,
  printer: Printer,
  worker: number | null = null,
): ServerLog {
  let leftOut = 0
  const print = (text: string): void => {
    if (printer.unreadBytes > MOST_UNREAD_BYTES) {
      leftOut++
      return
    }
    if (leftOut > 0) {
      const count = leftOut
      leftOut = 0
      write.log(`${count} lines were left out, because standard output was not read`, { level: 'warn' })
    }
    printer.print(text)
  }
  const write = format === 'json' ? jsonLog(print, worker) : textLog(print, worker)
  return write
}

function textLog(print: (text: string) => void, worker: number | null): ServerLog {
  const who = worker === null ? '' : `worker ${worker}: `
  const write = (_fields: unknown, message: string) => print(`${who}${cleanText(message)}`)
  return {
    log: line => print(`${who}${cleanText(line)}`),
    logger: { info: write, warn: write, error: write },
    access: ({ id, client, method, path, status, durationMs, reference }) => {
      const time = new Date().toISOString()
      const denied = reference === null ? '' : ` ${reference}`
      print(`${time} ${client ?? '-'} ${method} ${path} ${status} ${durationMs} ms ${id ?? '-'}${denied}`)
    },
  }
}

function jsonLog(print: (text: string) => void, worker: number | null): ServerLog {
  const who = worker === null ? {} : { worker }
  const start = (level: string) => ({ level, time: new Date().toISOString(), ...who })
  const write = (level: string, fields: object, message: string) =>
    print(JSON.stringify({ ...start(level), ...fields, message }, shownField))
  return {
    log: (line, { level = 'info', ...fields }: LineFields = {}) => write(level, fields, line),
    logger: {
      info: (fields, message) => write('info', fields, message),
      warn: (fields, message) => write('warn', fields, message),
      error: (fields, message) => write('error', fields, message),
    },
    // The fields are ours, and there may be thousands of lines a second.
    access: entry => print(JSON.stringify({ ...start('info'), ...entry, message: 'request' })),
  }
}

function shownField(key: string, value: unknown): unknown {
  if (SECRET.test(key)) return '***'
  if (typeof value === 'string') return cleanText(value)
  if (!(value instanceof Error)) return value
  // Of an error JSON would leave out just these.
  const { name: type, message, stack, code } = value as NodeJS.ErrnoException
  return { type, message, stack, code }
}
