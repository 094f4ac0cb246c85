/**
 * The tokens that a request has reserved, from the reservation to the end of the exchange: reads the answer as it passes, and
 * settles what it took, in whichever way it ended.
 */
import type { Decision, RuleLimiter } from 'headgate'
import { MAX_UNITS, type Meter, type MeterConfig } from 'headgate/internal'
import { decodeBeside } from './decode-beside.js'
import type { AnswerHead } from './end-to-end-headers.js'
import type { Untold } from './read-max-tokens.js'
import { answerFormat, type Usage, UsageReader } from './read-usage.js'

/**
 * Why a number is an estimate. Of the rule: the request does not say how much it asks for (`Untold`), or the answer not what it
 * took. `streamed`: of what had been streamed when the answer broke off, or of all of it.
 */
export type EstimateReason =
  | Untold
  | 'no-answer'
  | 'broken-off'
  | 'streamed'
  | 'usage-missing'
  | 'usage-invalid'
  | 'answer-unreadable'

export interface TokenListener {
  /** Tokens were settled. */
  onTokens(meter: Meter, tokens: number): void
  /** An estimate took the place of a number. */
  onEstimate(meter: Meter, reason: EstimateReason): void
}

export interface Reserved {
  readonly limiter: RuleLimiter
  /** The decision that charged the estimates. */
  readonly decision: Decision
  readonly estimates: Partial<Readonly<Record<Meter, number>>>
  /** The length of the request's body, if the client has told. */
  readonly bodyBytes: number | null
  readonly listener: TokenListener
}

/** English text has about four bytes a token. */
const BYTES_PER_TOKEN = 4

interface Settled {
  /** Null: the estimate stands. */
  readonly tokens: number | null
  readonly reason?: EstimateReason
}

export class TokenReservation {
  private isSent = false
  private status: number | null = null
  private reader: UsageReader | null = null
  private isStream = false
  private isComplete = false
  private isSettled = false
  private isUnreadable = false
  private decoder: ReturnType<typeof decodeBeside> = null

  constructor(private readonly reserved: Reserved) {}

  /** The request is on its way to the upstream. */
  sent(): void {
    this.isSent = true
  }

  /** The upstream answers. */
  answered({ status, rawHeaders }: AnswerHead): void {
    this.status = status
    const format = answerFormat(headerOf(rawHeaders, 'content-type'))
    if (format === null) return
    const reader = new UsageReader(format)
    this.reader = reader
    this.isStream = format === 'events'
    const encoding = headerOf(rawHeaders, 'content-encoding').trim().toLowerCase()
    if (encoding === '' || encoding === 'identity') return
    this.decoder = decodeBeside(encoding, chunk => reader.write(chunk))
    this.isUnreadable = this.decoder === null
  }

  /** Reads a piece of the answer. Returns false if no more should come before `onDrain` is called. */
  write(chunk: Buffer, onDrain: () => void): boolean {
    if (this.reader === null || this.isUnreadable) return true
    if (this.decoder !== null) return this.decoder.write(chunk, onDrain)
    this.reader.write(chunk)
    return true
  }

  /** Whether reading lags behind. */
  get isBehind(): boolean {
    return this.decoder?.isBehind === true
  }

  /** The answer is complete. */
  complete(): void {
    this.isComplete = true
  }

  /** The exchange is over, in whichever way. Only the first call counts. */
  settle(): void {
    if (this.isSettled) return
    this.isSettled = true
    const { decision } = this.reserved
    void decision.release()
    if (this.decoder === null) return void this.settleNow()
    this.decoder.end(isSound => {
      if (!isSound) this.isUnreadable = true
      this.settleNow()
    })
  }

  private settleNow(): void {
    const { limiter, decision, listener } = this.reserved
    const usage = this.reader?.usage() ?? null
    const byPolicy: Record<string, number> = {}
    for (const meter of decision.tokens) {
      const { tokens, reason } = this.taken(meter, usage)
      if (reason !== undefined) listener.onEstimate(meter.meter, reason)
      const units = Math.min(MAX_UNITS, tokens ?? this.estimateOf(meter))
      listener.onTokens(meter.meter, units)
      byPolicy[meter.policy] = units
    }
    // Where it fails, the estimate stands.
    limiter.settle(decision, byPolicy).catch(() => {})
  }

  private estimateOf({ meter, reserve }: MeterConfig): number {
    return this.reserved.estimates[meter] ?? reserve
  }

  private taken(config: MeterConfig, usage: Usage | null): Settled {
    const { meter } = config
    const { status } = this
    if (!this.isSent) return { tokens: 0 }
    if (status === null) return { tokens: null, reason: 'no-answer' }
    const count = usage?.[meter] ?? null
    // Providers do not charge for a call that they reject.
    if (status < 200 || status > 299) return { tokens: typeof count === 'number' ? count : 0 }
    if (this.isUnreadable) return { tokens: null, reason: 'answer-unreadable' }
    const isCounted = typeof count === 'number'
    if (isCounted && (this.isComplete || meter === 'input' || !this.isStream)) return { tokens: count }
    if (count === 'invalid') return { tokens: null, reason: 'usage-invalid' }
    const streamed = Math.ceil((this.reader?.textBytes ?? 0) / BYTES_PER_TOKEN)
    if (this.isStream && meter !== 'input' && (streamed > 0 || !this.isComplete)) {
      const prompt = meter === 'total' ? this.promptOf(config, usage) : 0
      return { tokens: Math.max(isCounted ? count : 0, prompt + streamed), reason: 'streamed' }
    }
    return { tokens: null, reason: this.isComplete ? 'usage-missing' : 'broken-off' }
  }

  /** What the prompt takes of a meter of both: as told, or by its length, but never more than was reserved. */
  private promptOf(config: MeterConfig, usage: Usage | null): number {
    if (typeof usage?.input === 'number') return usage.input
    const { bodyBytes } = this.reserved
    const most = this.estimateOf(config)
    return bodyBytes === null ? most : Math.min(most, Math.ceil(bodyBytes / BYTES_PER_TOKEN))
  }
}

function headerOf(rawHeaders: readonly string[], name: string): string {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() === name) return rawHeaders[index + 1] as string
  }
  return ''
}
