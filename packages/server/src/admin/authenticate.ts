import type { IncomingMessage } from 'node:http'
import { createLimiter, limitedAddress, slidingWindowLog } from 'headgate'
import type { Refusal } from '../http/problem.js'
import { headerValues } from '../http/raw-headers.js'
import type { Caller } from './endpoint.js'
import { createFindCaller, type Token } from './tokens.js'

/**
 * Finds the caller of a request: null for one without a token, a refusal for one that is not looked at. `isRelay`:
 * its `Authorization` is somebody else's, and the token is in `Headgate-Token`.
 */
export type Authenticate = (req: IncomingMessage, isRelay: boolean) => Promise<Caller | Refusal | null>

const RELAYED = /^([\x21-\x7e]{1,1024})$/
const BEARER = /^Bearer +([\x21-\x7e]{1,1024})$/i
const BAD_TOKENS_A_MINUTE = 20
/** A port that only this machine can reach asks for no token: its callers may do everything. */
const THIS_MACHINE: Caller = { name: null, role: 'administer' }

/** The answer to a request that needs a token and has none. */
export const TOKEN_MISSING: Refusal = {
  status: 401,
  detail: 'Authorization: expected Bearer and a token; got none',
  headers: [['WWW-Authenticate', 'Bearer realm="headgate"']],
}
const TOKEN_BAD: Refusal = {
  ...TOKEN_MISSING,
  detail: 'Authorization: expected Bearer and a token that is known here; got another',
}

/**
 * Authenticates callers by their token. An address with twenty bad tokens in a minute is refused until the minute
 * is over, even with a good one: otherwise it could keep guessing. Without tokens every caller is this machine.
 */
export function createAuthenticate(tokens: readonly Token[]): Authenticate {
  if (tokens.length === 0) return async () => THIS_MACHINE
  const findCaller = createFindCaller(tokens)
  const guesses = createLimiter({
    policies: { guesses: slidingWindowLog({ limit: BAD_TOKENS_A_MINUTE, window: '1m' }) },
  })
  return async (req, isRelay) => {
    const given = headerValues(req, isRelay ? 'headgate-token' : 'authorization')
    if (given.length === 0) return null
    const guesser = { type: 'ip', id: `${limitedAddress(req.socket.remoteAddress) ?? 'gone'}` }
    const { allowed, resetAfterMs } = await guesses.peek(guesser, { policy: 'guesses' })
    if (!allowed) return tooMany(resetAfterMs)
    const secret = given.length === 1 ? (isRelay ? RELAYED : BEARER).exec(given[0] as string)?.[1] : undefined
    const caller = findCaller(secret ?? '')
    if (caller !== null && secret !== undefined) return caller
    await guesses.check(guesser, { policy: 'guesses' })
    return TOKEN_BAD
  }
}

function tooMany(resetAfterMs: number | null): Refusal {
  const seconds = Math.max(1, Math.ceil((resetAfterMs ?? 0) / 1_000))
  return {
    status: 429,
    detail: 'Authorization: too many bad tokens from this address',
    headers: [['Retry-After', String(seconds)]],
  }
}
