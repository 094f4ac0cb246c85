import type { Decision, Logger, RuleLimiter } from 'headgate'
import { createEnforce, type Enforce } from 'headgate/adapter'
import type { HttpRequest, Identify } from 'headgate/identify'
import { throttledLog, type WriteLine } from '../log/write-line.js'

export interface EnforceOptions<Native> {
  readonly limiter: RuleLimiter
  /** Identifies the caller by the file in force. */
  identify(): Identify
  readonly log: WriteLine
  /** Returns the request to decide. */
  read(native: Native): HttpRequest
}

const FAULT_LINE_EVERY_MS = 60_000
/** Sources of a file wait only for the processor: a busy one must not let requests pass unchecked. */
const LOOKUP_TIMEOUT_MS = 30_000

/** Decides requests as every adapter does, and logs what prevented a decision. */
export function enforceRequests<Native extends object>(options: EnforceOptions<Native>): Enforce<Native> {
  const { limiter, identify, log, read } = options
  const logFault = throttledLog(log, FAULT_LINE_EVERY_MS)
  const onError = (error: unknown, decision?: Decision) => {
    const consequence = consequenceOf(decision)
    const { message: cause } = error as Error
    const line = () => `limiter failed, ${consequence}: ${cause}`
    logFault('limiter', line, { level: 'error', cause, consequence })
  }
  return createEnforce<Native>(
    {
      limiter,
      identify: (request, within) => identify()(request, within),
      lookupTimeoutMs: LOOKUP_TIMEOUT_MS,
      onError,
      logger: loggerTo(log),
    },
    { knowsPeer: true, read, origin: native => native },
  )
}

/** A caller whom its source could not look up is charged to another source or to its address. */
function consequenceOf(decision: Decision | undefined): string {
  if (decision?.source !== 'open' && decision?.source !== 'closed')
    return 'callers are charged to their address'
  return decision.allowed ? 'requests pass unchecked' : 'requests are rejected'
}

function loggerTo(log: WriteLine): Logger {
  const write = (level: 'info' | 'warn' | 'error') => (_fields: object, line: string) => log(line, { level })
  return { info: write('info'), warn: write('warn'), error: write('error') }
}
