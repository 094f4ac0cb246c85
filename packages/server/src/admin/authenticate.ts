import type { IncomingMessage } from 'node:http'
import { createLimiter, slidingWindowLog } from 'headgate'
import type { Rejection } from '../http/problem.js'
import { headerValues } from '../http/raw-headers.js'
import type { Caller } from './endpoint.js'
import type { FindCaller } from './tokens.js'

/**
 * Finds the caller of a request: null for one without a token, a rejection for one with a wrong token. `isRelay`: its
 * `Authorization` is somebody else's, and the token is in `Headgate-Token`.
 */
export type Authenticate = (req: IncomingMessage, isRelay: boolean) => Promise<Caller | Rejection | null>

/** Returns the address of the client of a request, behind trusted proxies; null if it has already gone. */
export type AddressOf = (req: IncomingMessage) => string | null

const RELAYED = /^([\x21-\x7e]{1,1024})$/
const BEARER = /^Bearer +([\x21-\x7e]{1,1024})$/i
/** Wrong tokens that are answered with 401; further ones get 429. */
const WRONG_A_MINUTE = { perAddress: 20, inAll: 1_000 }
/** A port that only this machine can reach asks for no token: its callers may do everything. */
const THIS_MACHINE: Caller = { name: null, role: 'administer' }

/** The answer to a request that needs a token and has none. */
export const TOKEN_MISSING: Rejection = {
  status: 401,
  detail: 'Authorization: expected Bearer and a token; got none',
  headers: [['WWW-Authenticate', 'Bearer realm="headgate"']],
}
const TOKEN_WRONG: Rejection = {
  ...TOKEN_MISSING,
  detail: 'Authorization: expected Bearer and a token that is known here; got another',
}

/**
 * Authenticates callers by their token. The token is compared first, so that no number of wrong ones keeps a right
 * one out: behind one proxy all callers may have the same address. Without tokens every caller is this machine.
 */
export function createAuthenticate(findCaller: FindCaller | null, addressOf: AddressOf): Authenticate {
  if (findCaller === null) return async () => THIS_MACHINE
  const countWrong = createWrongTokens()
  return async (req, isRelay) => {
    const given = headerValues(req, isRelay ? 'headgate-token' : 'authorization')
    if (given.length === 0) return null
    const secret = given.length === 1 ? (isRelay ? RELAYED : BEARER).exec(given[0] as string)?.[1] : undefined
    const caller = await findCaller(secret ?? '')
    if (caller !== null && secret !== undefined) return caller
    return countWrong(addressOf(req) ?? 'gone')
  }
}

/** Counts wrong tokens and says how each is answered. All are counted first, which bounds the addresses known. */
function createWrongTokens(): (address: string) => Promise<Rejection> {
  const limiter = createLimiter({
    policies: {
      all: slidingWindowLog({ limit: WRONG_A_MINUTE.inAll, window: '1m' }),
      address: slidingWindowLog({ limit: WRONG_A_MINUTE.perAddress, window: '1m' }),
    },
  })
  return async address => {
    const all = await limiter.check('internal:wrong-tokens', { policy: 'all' })
    if (!all.allowed) return tooMany(all.retryAfterMs, 'in all')
    const own = await limiter.check({ type: 'ip', id: address }, { policy: 'address' })
    return own.allowed ? TOKEN_WRONG : tooMany(own.retryAfterMs, 'from this address')
  }
}

function tooMany(retryAfterMs: number | null, whose: string): Rejection {
  const seconds = Math.max(1, Math.ceil((retryAfterMs ?? 0) / 1_000))
  return {
    status: 429,
    detail: `Authorization: too many wrong tokens ${whose}`,
    headers: [['Retry-After', String(seconds)]],
  }
}
