import { invalidOption } from '../errors/headgate-error.js'

/** Where the library writes log lines: the shape of pino and bunyan, so that `logger: pino()` is enough. */
export interface Logger {
  info(fields: Readonly<Record<string, unknown>>, message: string): void
  warn(fields: Readonly<Record<string, unknown>>, message: string): void
  error(fields: Readonly<Record<string, unknown>>, message: string): void
}

const LEVELS = ['info', 'warn', 'error'] as const satisfies (keyof Logger)[]

/** Writes nothing to standard output, which belongs to the program. */
const consoleLogger: Logger = {
  info: (_fields, message) => console.warn(`[headgate] ${message}`),
  warn: (_fields, message) => console.warn(`[headgate] ${message}`),
  error: (_fields, message) => console.error(`[headgate] ${message}`),
}

/** Validates a `logger` option; the default is the console. A logger that throws changes no decision. */
export function parseLogger(given: unknown): Logger {
  if (given === undefined) return consoleLogger
  const isLogger =
    typeof given === 'object' &&
    given !== null &&
    LEVELS.every(level => typeof (given as Record<string, unknown>)[level] === 'function')
  if (!isLogger) {
    throw invalidOption('logger', 'an object with info, warn and error', given)
  }
  const logger = given as Logger
  const write = (level: keyof Logger): Logger[keyof Logger] => {
    return (fields, message) => {
      try {
        logger[level](fields, message)
      } catch {
        // A line that cannot be written is lost, but the request goes on.
      }
    }
  }
  return { info: write('info'), warn: write('warn'), error: write('error') }
}
