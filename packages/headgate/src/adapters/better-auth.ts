import type { Limit } from '../algorithms/algorithm.js'
import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import type { Decision } from '../decision/decision.js'
import { retryAfterSeconds } from '../decision/headers.js'
import { checkLimits } from '../limiter/given-limits.js'
import type { Limiter } from '../limiter/limiter.js'
import { type Logger, parseLogger } from '../observe/logger.js'
import { logFaults } from './log.js'

/** The `rateLimit.customStorage` of better-auth: decides and counts a request in one step. */
export interface BetterAuthStorage {
  consume(key: string, rule: BetterAuthRule): Promise<{ allowed: boolean; retryAfter: number | null }>
}

/** The numbers that better-auth has for a path. */
export interface BetterAuthRule {
  /** In seconds. */
  readonly window: number
  readonly max: number
}

export interface BetterAuthOptions {
  /** What keeps the counts, with its store, switches and failure mode. Its policies are not charged. */
  readonly limiter: Limiter<string, string>
  /** The name of the limits in the store and in statistics. Default `better-auth`. */
  readonly name?: string
  /** Where faults are written. Default: the console. */
  readonly logger?: Logger
}

/** Custom rules may be functions of the request, and make up ever new numbers. */
const MAX_RULES = 1_000

/**
 * Creates a storage for the rate limits of better-auth. Their numbers stay where they are; each request is one atomic
 * check, in any window, so that no client gets twice the limit between two windows or two processes.
 *
 * @example
 * betterAuth({ rateLimit: { enabled: true, customStorage: betterAuthStorage({ limiter }) } })
 */
export function betterAuthStorage({
  limiter,
  name = 'better-auth',
  logger,
}: BetterAuthOptions): BetterAuthStorage {
  const report = logFaults(parseLogger(logger))
  const limits = new Map<string, Limit>()

  function limitOf({ window, max }: BetterAuthRule): Limit {
    const key = `${max}/${window}`
    let limit = limits.get(key)
    if (limit === undefined) {
      limit = slidingWindowLog({ limit: max, window })
      if (limits.size >= MAX_RULES) limits.clear()
      limits.set(key, limit)
    }
    return limit
  }

  /** A fault is never an error of the app: the failure mode decides. */
  async function decide(key: string, rule: BetterAuthRule): Promise<Decision> {
    try {
      // An address and a path, as better-auth joins them.
      const limit = { subject: { type: 'client', id: key }, policy: name, limit: limitOf(rule) }
      return (await checkLimits(limiter, { alternatives: [[limit]] })).decision
    } catch (error) {
      const decision = limiter.fallback()
      report(error, decision)
      return decision
    }
  }

  return {
    async consume(key, rule) {
      const decision = await decide(key, rule)
      // Better-auth has a number for every refusal.
      const retryAfter = decision.allowed ? null : (retryAfterSeconds(decision) ?? rule.window)
      return { allowed: decision.allowed, retryAfter }
    },
  }
}
