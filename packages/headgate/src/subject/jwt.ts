/**
 * Identifies callers by a claim of a JSON Web Token, verified by `jose`. A token with a wrong signature,
 * algorithm, issuer, audience or lifetime is treated as if it were absent.
 */
import type { JSONWebKeySet, JWTPayload, JWTVerifyGetKey, JWTVerifyOptions } from 'jose'
import { HeadgateError, invalidOption } from '../errors/headgate-error.js'
import { wholeNumber } from '../errors/whole-number.js'
import type { HttpRequest } from './http-request.js'
import type { VerifiedClaims } from './source-config.js'
import { cookieValues, firstAndLast, type Identified, type SubjectSource } from './sources.js'
import type { SubjectInput } from './subject.js'

export interface JwtOptions extends VerifiedClaims {
  /** The public keys that may have signed a token, as a JSON Web Key Set. Give either this or `secret`. */
  readonly jwks?: { readonly keys: readonly object[] }
  /** A secret of at least 32 characters shared with the issuer. Give either this or `jwks`. */
  readonly secret?: string
}

const SYMMETRIC = /^HS(256|384|512)$/
const ASYMMETRIC = /^((RS|PS|ES)(256|384|512)|EdDSA|Ed25519)$/
const MIN_SECRET_LENGTH = 32
/** No issuer needs more, and nobody should be able to make us parse it. */
const MAX_TOKEN_LENGTH = 8_192
const MAX_TOLERANCE_SECONDS = 300
/** The last key, the current one and the next. Each further one would be a third of a millisecond for a made-up token. */
const MAX_KEYS_TRIED = 3

/** Creates the source. `jose` is loaded in the background; `ready()` rejects if it is missing. */
export function jwt(options: JwtOptions): SubjectSource {
  validateOptions(options)
  const { claim = 'sub', type = 'user', tenantClaim, tierClaim, issuer, audience } = options
  const verifier = loadVerifier(options, {
    algorithms: [...options.algorithms],
    issuer,
    audience,
    requiredClaims: ['exp', claim],
    clockTolerance: options.clockToleranceSeconds ?? 0,
  })
  // The failure reaches those who await it; it must not end the process as an unhandled rejection.
  verifier.catch(() => {})

  function toIdentified(payload: JWTPayload): Identified | null {
    const id = idOf(payload[claim])
    if (id === null) return null
    const subjects: SubjectInput[] = [{ type, id }]
    const tenant = tenantClaim === undefined ? null : idOf(payload[tenantClaim])
    if (tenant !== null) subjects.push({ type: 'tenant', id: tenant })
    const tier = tierClaim === undefined ? null : idOf(payload[tierClaim])
    return { subject: subjects, ...(tier !== null && { tier }) }
  }

  return {
    types: tenantClaim === undefined ? [type] : [type, 'tenant'],
    find(request) {
      const tokens = tokensOf(request, options)
      return tokens.length === 0 ? null : verified(tokens)
    },
    async ready() {
      await verifier
    },
  }

  async function verified(tokens: readonly string[]): Promise<Identified | null> {
    const verify = await verifier
    for (const token of tokens) {
      const payload = await verify(token).catch(() => null)
      const finding = payload === null ? null : toIdentified(payload)
      if (finding !== null) return finding
    }
    return null
  }
}

type Verify = (token: string) => Promise<JWTPayload>

async function loadVerifier({ jwks, secret }: JwtOptions, checks: JWTVerifyOptions): Promise<Verify> {
  const { jwtVerify, createLocalJWKSet, errors } = await loadJose()
  const shared = new TextEncoder().encode(secret)
  const key: JWTVerifyGetKey =
    jwks === undefined ? async () => shared : createLocalJWKSet(jwks as JSONWebKeySet)
  return async token => {
    try {
      return (await jwtVerify(token, key, checks)).payload
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
      // A token need not name its key: during a key rotation any of several may have signed it.
      for (const candidate of await fewOf(error)) {
        const result = await jwtVerify(token, candidate, checks).catch(() => null)
        if (result !== null) return result.payload
      }
      throw error
    }
  }
}

/** Returns the keys that fit a token; none if there are too many, because whoever made it up chose to name none. */
async function fewOf<Key>(fitting: AsyncIterable<Key>): Promise<readonly Key[]> {
  const keys: Key[] = []
  for await (const key of fitting) {
    if (keys.length === MAX_KEYS_TRIED) return []
    keys.push(key)
  }
  return keys
}

/**
 * Collects the texts that may be the token. Servers tolerate odd forms (`Bearer<tab>token`, `Bearer token
 * rest`, the header sent twice), and a caller whom they accept must be recognised here too.
 */
function tokensOf(request: HttpRequest, { header = 'authorization', cookie }: JwtOptions): readonly string[] {
  const words =
    cookie === undefined
      ? (request.header(header.toLowerCase()) ?? '').split(/[\s,]+/)
      : cookieValues(request.header('cookie') ?? '', cookie)
  return firstAndLast(words.filter(isToken))
}

function isToken(word: string): boolean {
  return word.length <= MAX_TOKEN_LENGTH && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(word)
}

function idOf(claim: unknown): string | null {
  if (typeof claim === 'number' && Number.isSafeInteger(claim)) return String(claim)
  return typeof claim === 'string' && claim !== '' ? claim : null
}

async function loadJose(): Promise<typeof import('jose')> {
  try {
    return await import('jose')
  } catch (cause) {
    throw new HeadgateError(
      'ERR_HEADGATE_MISSING_PACKAGE',
      { field: 'jwt', expected: 'the package jose to verify tokens with', got: 'none: run npm install jose' },
      { cause },
    )
  }
}

function validateOptions(options: JwtOptions): void {
  const { jwks, secret, algorithms, issuer, audience, clockToleranceSeconds: tolerance = 0 } = options ?? {}
  if ((jwks === undefined) === (secret === undefined)) {
    throw rejection('jwks', 'either a key set or a secret', jwks === undefined ? 'neither' : 'both')
  }
  if (jwks !== undefined && !(Array.isArray(jwks?.keys) && jwks.keys.length > 0)) {
    throw rejection('jwks', 'a JSON Web Key Set with at least one key', jwks)
  }
  // The value is the secret, so it is never shown.
  if (secret !== undefined && (typeof secret !== 'string' || secret.length < MIN_SECRET_LENGTH)) {
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
      field: 'jwt secret',
      expected: `at least ${MIN_SECRET_LENGTH} characters`,
      got: 'fewer',
    })
  }
  // Accepting a public key as an HMAC secret would let everybody sign tokens, so each kind of key has its own
  // algorithms.
  const allowed = jwks === undefined ? SYMMETRIC : ASYMMETRIC
  if (!Array.isArray(algorithms) || algorithms.length === 0 || !algorithms.every(one => allowed.test(one))) {
    const names = jwks === undefined ? 'HS256, HS384 and HS512' : 'RS256, PS256, ES256, EdDSA and the like'
    throw rejection('algorithms', `a list out of ${names}`, algorithms)
  }
  if (typeof issuer !== 'string' || issuer === '') throw rejection('issuer', 'who issues the tokens', issuer)
  if (typeof audience !== 'string' || audience === '')
    throw rejection('audience', 'whom they are for', audience)
  wholeNumber(tolerance, 'jwt clockToleranceSeconds', 0, MAX_TOLERANCE_SECONDS)
}

function rejection(field: string, expected: string, got: unknown): Error {
  return invalidOption(`jwt ${field}`, expected, got)
}
