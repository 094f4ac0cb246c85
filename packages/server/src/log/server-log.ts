/** Where a server logs: lines for people, or JSON for machines, one object per line. */
import type { Logger } from 'headgate'
import { pino } from 'pino'
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
}

/** In case one is ever among the fields. */
const SECRETS = [
  'secret',
  'token',
  'password',
  'authorization',
  'cookie',
  'apikey',
  '*.secret',
  '*.token',
  '*.password',
]
/** `worker` is the number of the writing worker, for logs of several; null if there is only one process. */
export function createServerLog(
  format: LogFormat,
  printer: Printer,
  worker: number | null = null,
): ServerLog {
  return format === 'json' ? jsonLog(printer, worker) : textLog(printer, worker)
}

function textLog({ print }: Printer, worker: number | null): ServerLog {
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

function jsonLog({ print }: Printer, worker: number | null): ServerLog {
  const json = pino(
    {
      base: worker === null ? null : { worker },
      messageKey: 'message',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: level => ({ level }) },
      redact: { paths: SECRETS, censor: '***' },
    },
    { write: text => print(text.trimEnd()) },
  )
  const write = (
    level: 'info' | 'warn' | 'error',
    fields: Readonly<Record<string, unknown>>,
    message: string,
  ) => json[level](fields, cleanText(message))
  return {
    log: (line, { level = 'info', ...fields }: LineFields = {}) =>
      write(
        level,
        Object.fromEntries(
          Object.entries(fields).map(([key, value]) => [
            key,
            typeof value === 'string' ? cleanText(value) : value,
          ]),
        ),
        line,
      ),
    logger: {
      info: (fields, message) => write('info', fields, message),
      warn: (fields, message) => write('warn', fields, message),
      error: (fields, message) => write('error', fields, message),
    },
    access: entry => json.info(entry, 'request'),
  }
}
