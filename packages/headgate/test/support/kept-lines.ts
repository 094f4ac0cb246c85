import type { Logger } from '../../src/observe/logger.js'

/** Creates a logger that keeps its lines, each with its level in front. */
export function keepLines(): {
  readonly logger: Logger
  readonly lines: string[]
  readonly fields: object[]
} {
  const lines: string[] = []
  const fields: object[] = []
  const keep = (level: string) => (given: object, message: string) => {
    lines.push(`${level}: ${message}`)
    fields.push(given)
  }
  return { logger: { info: keep('info'), warn: keep('warn'), error: keep('error') }, lines, fields }
}
