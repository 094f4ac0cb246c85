import { ban } from '../algorithms/ban.js'
import type { Duration } from '../algorithms/durations.js'
import { parseUnits } from '../algorithms/limit-options.js'
import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import { rejectUnknown } from '../errors/reject-unknown.js'
import type { LongPolicyOptions } from './policies.js'

export interface LoginOptions {
  /** Wrong passwords for one account from one address, in `window`. Default 5. */
  readonly perAccount?: number
  /** Wrong passwords from one address, for all accounts, in `window`. Default 20. */
  readonly perAddress?: number
  /** Default `15m`. */
  readonly window?: Duration
}

/** The policies of a login. */
export interface LoginPolicies {
  /** Strict, with bans that grow: to be charged to the account and the address together, and forgotten on success. */
  readonly login: LongPolicyOptions
  /** Slow: to be charged to the address alone, whatever account it tries. */
  readonly 'login-address': LongPolicyOptions
}

/**
 * Returns two policies that together keep out who guesses passwords: `login`, for an account at an address (`together`), and
 * `login-address`, for the address. Neither is about the account alone, so that nobody is shut out by somebody else's guesses.
 *
 * @example
 * import { createLimiter, login } from 'headgate'
 *
 * const limiter = createLimiter({ policies: { ...login() } })
 */
export function login(options: LoginOptions = {}): LoginPolicies {
  rejectUnknown(options, ['perAccount', 'perAddress', 'window'])
  const { window = '15m' } = options
  const perAccount = parseUnits(options.perAccount ?? 5, 'perAccount')
  const perAddress = parseUnits(options.perAddress ?? 20, 'perAddress')
  return {
    login: {
      limits: slidingWindowLog({ limit: perAccount, window }),
      ban: ban({ after: 3, within: window, for: ['15m', '1h', '1d'] }),
    },
    'login-address': { limits: slidingWindowLog({ limit: perAddress, window }) },
  }
}
