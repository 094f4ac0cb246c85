import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { digest } from './digest.js'
import { type KeyParts, redisKey } from './key.js'
import { createSubjectNamer } from './subject.js'

/** Characters that end some part of a key, and those that could help to forge an encoding. */
const HOSTILE = [
  ':',
  '{',
  '}',
  '/',
  '%',
  '~',
  '.',
  '\0',
  '\n',
  '\r',
  '\u0085',
  '\u0080',
  'a',
  'b',
  '0',
  '2',
  '5',
  'u',
  'd',
  '8',
  '\ud800',
  '\udc00',
  '\ud83d\ude00',
  'é',
  '|',
  ' ',
]
const text = fc.oneof(
  { weight: 16, arbitrary: fc.string({ unit: fc.constantFrom(...HOSTILE), maxLength: 6 }) },
  { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(...HOSTILE), minLength: 20, maxLength: 140 }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('%~', '%25', '%3a', '%u80', '%ud800', 'x'.repeat(96), 'x'.repeat(97)),
  },
)
const filled = text.filter(part => part !== '')
const type = filled.map(part => part.replaceAll(':', ';')).filter(part => part !== '')
const NAMES = ['api.log-1m', 'api.counter-1h', 'tier.bucket', 'a.b']

/**
 * Combines random parts. The lists are as long as different primes, so every tuple is a new combination, and drawing
 * a few thousand texts suffices for any number of tuples.
 */
function* hostileParts(count: number): Generator<KeyParts> {
  const [tenants, types] = [fc.sample(text, 997), fc.sample(type, 991)]
  const [ids, scopes] = [fc.sample(filled, 983), fc.sample(filled, 977)]
  const at = (list: readonly string[], index: number) => list[index % list.length] as string
  for (let index = 0; index < count; index++) {
    yield {
      prefix: 'ratelimit',
      tenant: at(tenants, index),
      subject: `${at(types, index)}:${at(ids, index)}`,
      scope: at(scopes, index),
      name: at(NAMES, index),
    }
  }
}

const identity = (parts: KeyParts) =>
  JSON.stringify([parts.prefix, parts.tenant, parts.subject, parts.scope, parts.name])

/** Extracts the hash tag as Redis Cluster does. */
function hashTag(key: string): string {
  const open = key.indexOf('{')
  if (open === -1) return key
  const close = key.indexOf('}', open + 1)
  return close === -1 || close === open + 1 ? key : key.slice(open + 1, close)
}

describe('a Redis key', () => {
  it('a Redis key reads as it should', () => {
    const key = redisKey({
      prefix: 'ratelimit',
      tenant: '',
      subject: 'ip:2001:db8::1',
      scope: 'global',
      name: 'api.log-1m',
    })
    expect(key).toBe('ratelimit:v2:{ip:2001:db8::1}:global:api.log-1m')
  })

  it('the key of an IPv6 caller is in the slot of its /48, with those of the networks around it', () => {
    const keyOf = (subject: string) =>
      redisKey({ prefix: 'ratelimit', tenant: 't', subject, scope: 'global', name: 'api.log-1m' })
    expect(keyOf('ip:2001:db8:1:2::/64')).toBe(
      'ratelimit:v2:{t/ip:2001:db8:1::/48}2001:db8:1:2::/64:global:api.log-1m',
    )
    expect(keyOf('ip:2001:db8:1:0::/56')).toBe(
      'ratelimit:v2:{t/ip:2001:db8:1::/48}2001:db8:1:0::/56:global:api.log-1m',
    )
    expect(keyOf('ip:2001:db8:1::/48')).toBe('ratelimit:v2:{t/ip:2001:db8:1::/48}:global:api.log-1m')
    // Only names we made ourselves: text that merely looks like one is encoded as usual.
    expect(keyOf('ip:}{::/64')).toBe('ratelimit:v2:{t/ip:%7d%7b::/64}:global:api.log-1m')
  })

  it('different parts give different keys: over 100,000 hostile tuples, each with its neighbours', () => {
    const seen = new Map<string, string>()
    const see = (parts: KeyParts) => {
      const key = redisKey(parts)
      const known = seen.get(key)
      const own = identity(parts)
      if (known !== undefined && known !== own) throw new Error(`${known} and ${own}`)
      seen.set(key, own)
    }
    for (const parts of hostileParts(30_000)) {
      see(parts)
      // The same text cut at another place, which a careless encoding would confuse.
      const [type = '', ...rest] = parts.subject.split(':')
      const id = rest.join(':')
      if (parts.tenant !== '')
        see({ ...parts, tenant: '', subject: `${parts.tenant.replaceAll(':', '')}/${type}:${id}` })
      see({ ...parts, subject: `${type}:${id}}:${parts.scope}` })
      see({ ...parts, scope: `${parts.scope}:${parts.name}` })
      see({ ...parts, tenant: `${parts.tenant}/${type}` })
    }
    expect(seen.size).toBeGreaterThan(100_000)
  }, 120_000)

  it('a key is the same for the same parts, and differs where only one lone surrogate does', () => {
    const of = (id: string) =>
      redisKey({ prefix: 'p', tenant: '', subject: `user:${id}`, scope: 's', name: 'a.b' })
    expect(of('x')).toBe(of('x'))
    const ids = [
      '\ud800',
      '\ud801',
      '\udfff',
      '\ufffd',
      '\ud800\udc00',
      '%ud800',
      '\u0080',
      '%u80',
      '\0',
      '%00',
    ]
    const keys = ids.map(of)
    expect(new Set(keys.map(key => Buffer.from(key).toString('hex'))).size).toBe(ids.length)
  })

  it('no text can choose the slot of a key: the hash tag is always the part in braces', () => {
    for (const parts of hostileParts(20_000)) {
      const key = redisKey(parts)
      const tag = hashTag(key)
      if (tag === '' || tag === key) throw new Error(`no hash tag in ${key}`)
      if (!key.startsWith(`ratelimit:v2:{${tag}}:`)) throw new Error(`the tag of ${key} is ${tag}`)
      // Neither scope nor name moves it, so all limits of a subject share a slot.
      const other = hashTag(redisKey({ ...parts, scope: '{x}', name: 'other.limit' }))
      if (other !== tag) throw new Error(`${tag} became ${other}`)
    }
  })

  it('a key never holds a control character or half a character', () => {
    for (const parts of hostileParts(10_000)) {
      const key = redisKey(parts)
      if (/[\p{Cc}\p{Cs}]/u.test(key)) throw new Error(JSON.stringify(key))
      if (Buffer.from(key).toString() !== key) throw new Error(JSON.stringify(key))
    }
  })

  it('a key stays below 200 bytes for an API key of a megabyte', () => {
    const nameSubject = createSubjectNamer()
    for (const secret of ['k'.repeat(1_000_000), '\ud83d\ude00'.repeat(250_000), '\0'.repeat(1_000_000)]) {
      const subject = nameSubject({ type: 'apikey', id: secret })
      const key = redisKey({
        prefix: 'ratelimit',
        tenant: 'acme',
        subject,
        scope: 'global',
        name: 'api.log-1m',
      })
      expect(Buffer.byteLength(key)).toBeLessThanOrEqual(200)
    }
  })

  it('a key cannot be forged by writing the digest of another part', () => {
    const of = (id: string, scope: string) =>
      redisKey({ prefix: 'p', tenant: '', subject: `user:${id}`, scope, name: 'a.b' })
    const long = 'x'.repeat(97)
    const written = digest('headgate.key', long)
    for (const forged of [written, `~${written}`, `%~${written}`]) {
      expect(of(forged, 's')).not.toBe(of(long, 's'))
      expect(of('a', forged)).not.toBe(of('a', long))
    }
  })

  it('a key keeps a part of 96 characters once it is encoded, and digests one of 97', () => {
    const of = (scope: string) =>
      redisKey({ prefix: 'p', tenant: '', subject: 'user:1', scope, name: 'a.b' }).split(':').at(-2)
    expect(of('x'.repeat(96))).toBe('x'.repeat(96))
    expect(of('x'.repeat(97))).toMatch(/^%~[0-9a-f]{32}$/)
    expect(of(`{${'x'.repeat(93)}`)).toBe(`%7b${'x'.repeat(93)}`)
    expect(of(`{${'x'.repeat(94)}`)).toMatch(/^%~[0-9a-f]{32}$/)
  })

  it('a key is bounded whatever comes in: long parts become digests', () => {
    const long = '{:\ud800'.repeat(100_000)
    const key = redisKey({
      prefix: 'p',
      tenant: long,
      subject: `${long.replaceAll(':', '')}:${long}`,
      scope: long,
      name: 'a.b',
    })
    expect(Buffer.byteLength(key)).toBeLessThanOrEqual(200)
  })
})
