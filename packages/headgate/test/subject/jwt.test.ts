/** Tokens are verified by the real jose; an unverified one identifies nobody. */
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { createIdentify, type HttpRequest, jwt } from '../../src/identify.js'
import type { JwtOptions } from '../../src/subject/jwt.js'

const SECRET = 'a secret of more than thirty-two characters'
const AUDIENCE = 'api.example'
const ISSUER = 'https://issuer.example'
const common = { issuer: ISSUER, audience: AUDIENCE }

type Key = Parameters<SignJWT['sign']>[0]

interface Signed {
  readonly key: Key
  readonly alg: string
  readonly kid?: string | null
  readonly claims?: JWTPayload
  readonly issuer?: string
  readonly audience?: string
  readonly expires?: string | null
  readonly notBefore?: string
}

function sign({ key, alg, kid = 'one', claims = {}, ...rest }: Signed): Promise<string> {
  const { issuer = ISSUER, audience = AUDIENCE, expires = '1m', notBefore } = rest
  const token = new SignJWT({ sub: '42', ...claims })
    .setProtectedHeader({ alg, ...(kid !== null && { kid }) })
    .setIssuer(issuer)
    .setAudience(audience)
  if (expires !== null) token.setExpirationTime(expires)
  if (notBefore !== undefined) token.setNotBefore(notBefore)
  return token.sign(key)
}

async function found(options: JwtOptions, authorization: string, name = 'authorization') {
  const request: HttpRequest = {
    method: 'GET',
    url: '/',
    peer: '203.0.113.9',
    route: undefined,
    header: header => (header === name ? authorization : undefined),
  }
  const identify = createIdentify({ sources: [jwt(options)] })
  await identify.ready()
  return identify(request)
}

const NOBODY = { subjects: ['ip:203.0.113.9'], tier: undefined }
const USER = { subjects: [{ type: 'user', id: '42' }], tier: undefined }

describe('with public keys', () => {
  let options: JwtOptions
  let key: Key
  let other: Key
  let publicText: string
  beforeAll(async () => {
    const pair = await generateKeyPair('RS256', { extractable: true })
    key = pair.privateKey
    other = (await generateKeyPair('RS256')).privateKey
    const jwk = await exportJWK(pair.publicKey)
    publicText = JSON.stringify(jwk)
    options = { jwks: { keys: [{ ...jwk, kid: 'one', alg: 'RS256' }] }, algorithms: ['RS256'], ...common }
  })

  it('a valid token gives its subject, its organisation and its tier', async () => {
    expect(await found(options, `Bearer ${await sign({ key, alg: 'RS256' })}`)).toEqual(USER)
    const claims = { org: 'acme', plan: 'pro', uid: 7 }
    const token = await sign({ key, alg: 'RS256', claims })
    const wanting = { ...options, claim: 'uid', type: 'member', tenantClaim: 'org', tierClaim: 'plan' }
    expect(await found(wanting, `bearer ${token}`)).toEqual({
      subjects: [
        { type: 'member', id: '7' },
        { type: 'tenant', id: 'acme' },
      ],
      tier: 'pro',
    })
    expect(await found({ ...options, cookie: 'token' }, `a=b; token=${token}`, 'cookie')).toEqual(USER)
    expect(await found({ ...options, header: 'X-Token' }, token, 'x-token')).toEqual(USER)
  })

  it.each<[string, () => Promise<string> | string]>([
    ['signed by another key', () => sign({ key: other, alg: 'RS256' })],
    ['of another issuer', () => sign({ key, alg: 'RS256', issuer: 'https://evil.example' })],
    ['for somebody else', () => sign({ key, alg: 'RS256', audience: 'other.example' })],
    ['that has ended', () => sign({ key, alg: 'RS256', expires: '-1s' })],
    ['that never ends', () => sign({ key, alg: 'RS256', expires: null })],
    ['that has not begun', () => sign({ key, alg: 'RS256', notBefore: '1h' })],
    ['by an algorithm that was not allowed', () => sign({ key, alg: 'PS256' }).catch(() => 'a.b.c')],
    ['by a key with another name', () => sign({ key, alg: 'RS256', kid: 'two' })],
    ['whose subject is no name', () => sign({ key, alg: 'RS256', claims: { sub: {} as never } })],
    [
      'signed with the public key as a secret',
      () => sign({ key: new TextEncoder().encode(publicText), alg: 'HS256' }),
    ],
    [
      'signed by nobody',
      () => new UnsecuredJWT({ sub: '42' }).setIssuer(ISSUER).setAudience(AUDIENCE).encode(),
    ],
    [
      'that was changed',
      async () => (await sign({ key, alg: 'RS256' })).replace(/^[^.]+\.[^.]+/, head => `${head}x`),
    ],
    ['that is none', () => 'not.a.token'],
    ['without end', () => `${'a'.repeat(100_000)}.b.c`],
    ['beside another that does not hold', () => 'not.a.token, Bearer another.bad.token'],
  ])('a token %s identifies nobody', async (_name, make) => {
    expect(await found(options, `Bearer ${await make()}`)).toEqual(NOBODY)
  })

  it('a token that does not name its key may be signed by any of several, and by no other', async () => {
    const next = await generateKeyPair('RS256', { extractable: true })
    const nextKey = { ...(await exportJWK(next.publicKey)), kid: 'next', alg: 'RS256' }
    const changing = { ...options, jwks: { keys: [...(options.jwks?.keys ?? []), nextKey] } }
    for (const signer of [key, next.privateKey]) {
      const token = await sign({ key: signer, alg: 'RS256', kid: null })
      expect(await found(changing, `Bearer ${token}`)).toEqual(USER)
    }
    const stranger = await sign({ key: other, alg: 'RS256', kid: null })
    expect(await found(changing, `Bearer ${stranger}`)).toEqual(NOBODY)
  })

  it('a token that does not name its key is looked at only where at most three fit, so that nobody makes us try ten', async () => {
    const pairs = await Promise.all(
      Array.from({ length: 9 }, () => generateKeyPair('ES256', { extractable: true })),
    )
    const more = await Promise.all(
      pairs.map(async ({ publicKey }, index) => ({ ...(await exportJWK(publicKey)), kid: `more-${index}` })),
    )
    const own = pairs[2]?.privateKey as Key
    const withKeys = (count: number) => ({
      ...options,
      algorithms: ['RS256', 'ES256'],
      jwks: { keys: [...(options.jwks?.keys ?? []), ...more.slice(0, count)] },
    })
    const verify = vi.spyOn(crypto.subtle, 'verify')
    const triesOf = async (count: number, token: string) => {
      verify.mockClear()
      const who = await found(withKeys(count), `Bearer ${token}`)
      return [who.subjects[0] === NOBODY.subjects[0] ? 'nobody' : 'user', verify.mock.calls.length]
    }
    const unnamed = await sign({ key: own, alg: 'ES256', kid: null })
    expect(await triesOf(3, unnamed)).toEqual(['user', 3])
    expect(await triesOf(9, unnamed)).toEqual(['nobody', 0])
    // Keys of another kind do not count, and a key that is named is the only one tried.
    expect(await triesOf(9, await sign({ key, alg: 'RS256', kid: null }))).toEqual(['user', 1])
    expect(await triesOf(9, await sign({ key: own, alg: 'ES256', kid: 'more-2' }))).toEqual(['user', 1])
    verify.mockRestore()
  })

  it.each<[string, (token: string) => string]>([
    ['a tab', token => `Bearer\t${token}`],
    ['something behind it', token => `Bearer ${token} x`],
    ['a second line', token => `Bearer ${token}, Bearer x.y.z`],
    ['a line before it', token => `Basic eA==, Bearer x.y.z, Bearer ${token}`],
  ])('a valid token is found in spite of %s', async (_name, write) => {
    expect(await found(options, write(await sign({ key, alg: 'RS256' })))).toEqual(USER)
  })

  it.each<[string, (token: string) => string]>([
    ['an encoded letter', token => `token=%${token.charCodeAt(0).toString(16)}${token.slice(1)}`],
    ['another value behind it', token => `token=${token}; token=x`],
    ['another value before it', token => `token=x.y.z; a=b; token="${token}"`],
  ])('a token in a cookie is found in spite of %s', async (_name, write) => {
    const inCookie = { ...options, cookie: 'token' }
    expect(await found(inCookie, write(await sign({ key, alg: 'RS256' })), 'cookie')).toEqual(USER)
  })
})

describe('with a secret', () => {
  const options: JwtOptions = { secret: SECRET, algorithms: ['HS256'], ...common }
  const key = new TextEncoder().encode(SECRET)

  it('a valid token gives its subject', async () => {
    expect(await found(options, `Bearer ${await sign({ key, alg: 'HS256' })}`)).toEqual(USER)
    expect(await found(options, `Bearer ${await sign({ key, alg: 'HS512' })}`)).toEqual(NOBODY)
  })

  it('clockToleranceSeconds allows for a clock that is slightly off', async () => {
    const token = `Bearer ${await sign({ key, alg: 'HS256', expires: '-5s' })}`
    expect(await found(options, token)).toEqual(NOBODY)
    expect(await found({ ...options, clockToleranceSeconds: 30 }, token)).toEqual(USER)
  })

  it.each<[object, string]>([
    [{ secret: undefined }, 'jwt jwks: expected either a key set or a secret; got "neither"'],
    [{ jwks: { keys: [] } }, 'jwt jwks: expected either a key set or a secret; got "both"'],
    [{ secret: 'short' }, 'jwt secret: expected at least 32 characters'],
    [{ algorithms: [] }, 'jwt algorithms: expected a list out of HS256'],
    [{ algorithms: ['none'] }, 'jwt algorithms: expected a list out of HS256'],
    [{ algorithms: ['RS256'] }, 'jwt algorithms: expected a list out of HS256'],
    [{ secret: undefined, jwks: { keys: [{}] } }, 'jwt algorithms: expected a list out of RS256'],
    [{ issuer: '' }, 'jwt issuer: expected who issues the tokens'],
    [{ audience: undefined }, 'jwt audience: expected whom they are for'],
    [{ clockToleranceSeconds: 301 }, 'jwt clockToleranceSeconds: expected a whole number from 0 to 300'],
  ])('%j is rejected at the start, and no secret is shown', (changes, message) => {
    expect(() => jwt({ ...options, ...changes } as JwtOptions)).toThrow(message)
  })
})
