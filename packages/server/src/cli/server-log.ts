/** Where a server writes: lines for people, or JSON for machines, one object a line. */
import type { Logger } from 'headgate'
import { printable } from 'headgate/config'
import { pino } from 'pino'
import type { AccessEntry } from '../gateway/gateway.js'
import type { Log, LogFields } from '../gateway/throttled-log.js'
import type { Terminal } from './terminal.js'

export type LogFormat = 'text' | 'json'

export interface ServerLog {
  readonly log: Log
  /** For the library. */
  readonly logger: Logger
  access(entry: AccessEntry): void
}

/** Should one ever be among the fields. */
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
/** `redis://user:password@host` without what stands before the @. */
const CREDENTIALS = /(\/\/)[^/\s'"]*@/g

/** `worker` is the number of the one that writes, for the lines of several; null if there is only one process. */
export function createServerLog(
  format: LogFormat,
  terminal: Terminal,
  worker: number | null = null,
): ServerLog {
  return format === 'json' ? jsonLog(terminal, worker) : textLog(terminal, worker)
}

function textLog({ print }: Terminal, worker: number | null): ServerLog {
  const who = worker === null ? '' : `worker ${worker}: `
  const write = (_fields: unknown, message: string) => print(`${who}${clean(message)}`)
  return {
    log: line => print(`${who}${clean(line)}`),
    logger: { info: write, warn: write, error: write },
    access: ({ id, client, method, path, status, durationMs }) =>
      print(`${client ?? '-'} ${method} ${path} ${status} ${durationMs} ms ${id ?? '-'}`),
  }
}

function jsonLog({ print }: Terminal, worker: number | null): ServerLog {
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
  ) => json[level](fields, clean(message))
  return {
    log: (line, { level = 'info', ...fields }: LogFields = {}) =>
      write(level, Object.fromEntries(Object.entries(fields).map(([key, text]) => [key, clean(text)])), line),
    logger: {
      info: (fields, message) => write('info', fields, message),
      warn: (fields, message) => write('warn', fields, message),
      error: (fields, message) => write('error', fields, message),
    },
    access: entry => json.info(entry, 'request'),
  }
}

function clean(text: string): string {
  return text.replace(CREDENTIALS, '$1***@').split('\n').map(printable).join('\n')
}
