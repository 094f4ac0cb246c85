import { type Decision, decisionProblem, type Gate } from 'headgate'
import { createEnforce, type Enforce, type HttpRequest } from 'headgate/adapter'
import type { Identify } from 'headgate/identify'
import { throttledLog, type WriteLine } from '../log/write-line.js'

export interface EnforceOptions<Native> {
  readonly gate: Gate
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
  const { gate, identify, log, read } = options
  const logFault = throttledLog(log, FAULT_LINE_EVERY_MS)
  const onError = (error: unknown, decision?: Decision) => {
    const consequence = decision?.allowed ? 'requests pass unchecked' : 'requests are refused'
    const { message: cause } = error as Error
    const line = () => `limiter failed, ${consequence}: ${cause}`
    logFault('limiter', line, { level: 'error', cause, consequence })
  }
  return createEnforce<Native>(
    {
      gate,
      identify: request => identify()(request),
      lookupTimeoutMs: LOOKUP_TIMEOUT_MS,
      // The same for browsers: whoever calls an API through a proxy reads the problem.
      body: decision => `${JSON.stringify(decisionProblem(decision).body)}\n`,
      contentType: 'application/problem+json',
      onError,
    },
    { knowsPeer: true, read, origin: native => native },
  )
}
