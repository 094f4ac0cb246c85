import { combinedLog } from './combined-log.js'
import { csvLog } from './csv-log.js'
import type { ReadLine } from './logged-request.js'
import { requestOfFields } from './named-fields.js'

/** The formats a log may have. */
export const LOG_FORMATS = ['combined', 'json', 'csv'] as const
export type LogFormat = (typeof LOG_FORMATS)[number]

const READERS: Readonly<Record<LogFormat, () => ReadLine>> = {
  combined: combinedLog,
  json: () => jsonLine,
  csv: csvLog,
}

/** Creates a reader for one log: CSV's first line is its header, so a reader serves one log only. */
export function createLineReader(format: LogFormat): ReadLine {
  return READERS[format]()
}

/** Guesses the format of a log by its first line. */
export function formatOf(firstLine: string): LogFormat {
  if (firstLine.trimStart().startsWith('{')) return 'json'
  const time = firstLine.indexOf('[')
  return time >= 0 && firstLine.includes('] "', time) ? 'combined' : 'csv'
}

function jsonLine(line: string): ReturnType<ReadLine> {
  try {
    const fields: unknown = JSON.parse(line)
    if (typeof fields !== 'object' || fields === null) return null
    return requestOfFields(name => (Object.hasOwn(fields, name) ? (fields as Fields)[name] : undefined))
  } catch {
    return null
  }
}

type Fields = Readonly<Record<string, unknown>>
