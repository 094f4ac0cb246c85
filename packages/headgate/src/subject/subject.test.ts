import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isHeadgateError } from '../errors/headgate-error.js'
import { limitedAddress } from './client-address.js'
import {
  createSubjectNamer,
  namesNobody,
  type Subject,
  type SubjectInput,
  type SubjectWarning,
} from './subject.js'

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
  'a',
  'b',
  '0',
  '\ud800',
  '\udc00',
  '\ud83d\ude00',
  'e\u0301',
  'é',
]
const text = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: fc.constantFrom(...HOSTILE), minLength: 1, maxLength: 6 }) },
  { weight: 1, arbitrary: fc.string({ unit: fc.constantFrom(...HOSTILE), minLength: 60, maxLength: 70 }) },
)
const type = fc.oneof(
  fc.constantFrom('user', 'ip', 'apikey', 'session', 'a'),
  text.map(part => part.replaceAll(':', ';')),
)
const CANARY = 'sk_live_canary_4eC39HqLyjWDarjtT1zdp7dc'

function errorOf(act: () => unknown): Error & { code?: string } {
  try {
    act()
  } catch (error) {
    if (isHeadgateError(error)) return error
    throw error
  }
  throw new Error('expected an error')
}

describe('the name of a subject', () => {
  it('the name of a subject is type:id, however it is written', () => {
    const nameSubject = createSubjectNamer()
    expect(nameSubject('user:42')).toBe('user:42')
    expect(nameSubject({ type: 'user', id: '42' })).toBe('user:42')
    expect(nameSubject('ip:192.0.2.1')).toBe('ip:192.0.2.1')
    expect(nameSubject({ type: 'ip', id: '2001:db8::1' })).toBe('ip:2001:db8:0:0::/64')
  })

  it.each([
    ['ip:2001:db8:1:2::1', 'ip:2001:db8:1:2::/64'],
    ['ip:2001:DB8:1:2:ffff:ffff:ffff:ffff', 'ip:2001:db8:1:2::/64'],
    ['IP:2001:0db8:0001:0002::/64', 'ip:2001:db8:1:2::/64'],
    ['ip:fe80::1%eth0', 'ip:fe80:0:0:0::/64'],
    ['ip:::1', 'ip:0:0:0:0::/64'],
    ['ip:::ffff:1.2.3.4', 'ip:1.2.3.4'],
    ['ip:::FFFF:102:304', 'ip:1.2.3.4'],
    ['ip:64:ff9b::1.2.3.4', 'ip:64:ff9b:0:0::/64'],
    ['ip:2001:db8:1:2ff::/56', 'ip:2001:db8:1:200::/56'],
    ['ip:2001:db8:1:2::/48', 'ip:2001:db8:1::/48'],
    // Text that is not an address, or not a network that one caller has, stays as it is.
    ['ip:2001:db8::/32', 'ip:2001:db8::/32'],
    ['ip:::ffff:1.2.3.4/64', 'ip:::ffff:1.2.3.4/64'],
    ['ip:a:b', 'ip:a:b'],
    ['user:2001:db8::1', 'user:2001:db8::1'],
  ])('the name of an IPv6 address is its /64: %s is %s', (subject, name) => {
    const nameSubject = createSubjectNamer()
    expect(nameSubject(subject as SubjectInput)).toBe(name)
    expect(nameSubject(subject as SubjectInput)).toBe(name)
    expect(nameSubject(name as SubjectInput)).toBe(name)
  })

  it('subjects whose types differ only in case have the same name, and no others do', () => {
    const nameSubject = createSubjectNamer()
    expect(nameSubject('User:Ada')).toBe('user:Ada')
    expect(nameSubject({ type: 'USER', id: 'Ada' })).toBe('user:Ada')
    expect(nameSubject('user:ada')).toBe('user:ada')
    expect(nameSubject('É:1')).toBe('É:1')
    expect(nameSubject('iP:1.2.3.4')).toBe('ip:1.2.3.4')
  })

  it('different subjects have different names: 100,000 hostile ones', () => {
    const nameSubject = createSubjectNamer()
    const seen = new Map<string, string>()
    fc.assert(
      fc.property(type, text, (type, id) => {
        const name = nameSubject({ type, id })
        // Addresses of one /64 are one caller.
        const identity = JSON.stringify([type, (type === 'ip' && limitedAddress(id)) || id])
        const known = seen.get(name)
        if (known !== undefined && known !== identity) throw new Error(`${known} and ${identity} are ${name}`)
        seen.set(name, identity)
      }),
      { numRuns: 100_000 },
    )
  })

  it('the name of a subject cannot be forged by writing a digest as an id', () => {
    const nameSubject = createSubjectNamer()
    for (const id of ['x'.repeat(65), '~x', '~']) {
      const name = nameSubject({ type: 'user', id })
      expect(name).toMatch(/^user:~[0-9a-f]{32}$/)
      expect(nameSubject(name as SubjectInput)).not.toBe(name)
    }
  })

  it('the name of a subject keeps case, normal form and control characters apart', () => {
    const nameSubject = createSubjectNamer()
    const ids = ['é', 'e\u0301', 'É', 'a', 'A', 'a\0', 'a\r\n', 'a ', ' a']
    expect(new Set(ids.map(id => nameSubject({ type: 'user', id }))).size).toBe(ids.length)
  })

  it('the name of a subject stays short: an id of 64 is kept, one of 65 is a digest', () => {
    const nameSubject = createSubjectNamer()
    expect(nameSubject(`user:${'x'.repeat(64)}`)).toBe(`user:${'x'.repeat(64)}`)
    expect(nameSubject(`user:${'x'.repeat(65)}`)).toHaveLength('user:~'.length + 32)
    expect(nameSubject(`user:${'x'.repeat(1_000_000)}`)).toHaveLength('user:~'.length + 32)
  })

  it('the name of a subject is the same whether remembered or made anew', () => {
    const nameSubject = createSubjectNamer()
    const first = nameSubject(`apikey:${CANARY}`)
    for (let count = 0; count < 10_001; count++) nameSubject(`session:${count}`)
    expect(nameSubject(`apikey:${CANARY}`)).toBe(first)
    expect(createSubjectNamer()(`apikey:${CANARY}`)).toBe(first)
  })
})

describe('a secret', () => {
  it.each(['apikey', 'session'])('a secret of type %s leaves only as a keyed hash', type => {
    const name = createSubjectNamer()({ type, id: CANARY })
    expect(name).toMatch(new RegExp(`^${type}:~[0-9a-f]{32}$`))
    expect(name).not.toContain(CANARY)
    expect(createSubjectNamer({ secret: 'another' })({ type, id: CANARY })).not.toBe(name)
  })

  it.each([
    'ApiKey',
    'APIKEY',
    'api-key',
    'X_Api_Key',
    'key',
    'token',
    'Access-Token',
    'Session',
    'sessionId',
    'sid',
    'jwt',
    'Bearer',
    'cookie',
    'clientSecret',
    'password',
  ])('a type that is called %s looks like a secret', type => {
    const name = createSubjectNamer({ secret: 's' })({ type, id: CANARY })
    expect(name).not.toContain(CANARY)
    expect(name).toMatch(/^[^:A-Z]+:~[0-9a-f]{32}$/)
    expect(createSubjectNamer({ secret: 's' })(`${type.toLowerCase()}:${CANARY}`)).toBe(name)
  })

  it('secretTypes adds types of your own, in any case, to the built-in ones', () => {
    const nameSubject = createSubjectNamer({ secret: 's', secretTypes: ['License'] })
    expect(nameSubject(`license:${CANARY}`)).not.toContain(CANARY)
    expect(nameSubject(`LICENSE:${CANARY}`)).toBe(nameSubject(`license:${CANARY}`))
    expect(nameSubject(`apikey:${CANARY}`)).not.toContain(CANARY)
  })

  it('a secret has the digest it always had, so that an upgrade forgets nothing', () => {
    const nameSubject = createSubjectNamer({ secret: 'a secret' })
    expect(nameSubject('apikey:sk_live_1')).toBe('apikey:~5c06146ff126d3887adc01f14a0cc47d')
    expect(nameSubject(`user:${'é'.repeat(70)}`)).toBe('user:~5e4ad4df979baee7ca1e9c54bf62e887')
    expect(nameSubject(`user:${'\ud800'.repeat(70)}`)).toBe('user:~7afea139478e6d42ab7737792bb37a36')
  })

  // Work that grows with the square of the length would not end within a test's time.
  it.each(['x', 'é', '\ud800'])('a secret of a million %j has a name like any other', character => {
    const nameSubject = createSubjectNamer({ secret: 's' })
    const key: SubjectInput = `apikey:${character.repeat(1_000_000)}`
    expect(nameSubject(key)).toMatch(/^apikey:~[0-9a-f]{32}$/)
  })

  it('hashing a secret without a key of your own warns once, with a code', () => {
    const told: SubjectWarning[] = []
    const nameSubject = createSubjectNamer({ onWarning: warning => told.push(warning) })
    nameSubject('user:42')
    nameSubject(`user:${'x'.repeat(100)}`)
    expect(told).toEqual([])
    nameSubject(`ApiKey:${CANARY}`)
    nameSubject(`session:${CANARY}`)
    expect(told.map(({ code }) => code)).toEqual(['WARN_HEADGATE_DEFAULT_SECRET'])
    expect(told[0]?.message).toContain('subject.secret')
    expect(JSON.stringify(told)).not.toContain(CANARY)
    const kept: SubjectWarning[] = []
    const onWarning = (warning: SubjectWarning) => void kept.push(warning)
    createSubjectNamer({ secret: 's', onWarning })(`apikey:${CANARY}`)
    expect(kept).toEqual([])
  })

  it('a secret never appears in an error, however wrongly it is passed', () => {
    const nameSubject = createSubjectNamer()
    const wrong: unknown[] = [
      CANARY,
      `:${CANARY}`,
      { type: CANARY },
      { id: CANARY },
      { type: `a:${CANARY}`, id: CANARY },
      { type: '', id: CANARY },
      { type: 'apikey', id: { secret: CANARY } },
      [CANARY],
    ]
    for (const subject of wrong) {
      const error = errorOf(() => nameSubject(subject as Subject))
      expect(error.code).toBe('ERR_HEADGATE_INVALID_SUBJECT')
      expect(`${error.message} ${error.stack} ${JSON.stringify(error)}`).not.toContain(CANARY)
    }
    const options = errorOf(() => createSubjectNamer({ secret: [CANARY] as unknown as string }))
    expect(`${options.message} ${options.stack}`).not.toContain(CANARY)
  })
})

describe('what is not a subject', () => {
  it.each([
    undefined,
    null,
    42,
    '',
    'user',
    ':42',
    'user:',
    ':',
    {},
    [],
    () => 'user:42',
    Symbol('user'),
    42n,
    true,
    { type: 'user' },
    { id: '42' },
    { type: 'user', id: 42 },
    { type: '', id: '42' },
    { type: 'user', id: '' },
    { type: 'us:er', id: '42' },
  ])('text that is not a subject is rejected by name: case %#', subject => {
    const error = errorOf(() => createSubjectNamer()(subject as Subject))
    expect(error.code).toBe('ERR_HEADGATE_INVALID_SUBJECT')
    expect(error.message).toMatch(/^subject: expected 'type:id' .*; got /)
  })

  it.each([{ secret: '' }, { secret: 5 }, { secretTypes: 'apikey' }, { secretTypes: [1] }])(
    'options %j of a subject are rejected by name',
    options => {
      const error = errorOf(() => createSubjectNamer(options as never))
      expect(error.code).toBe('ERR_HEADGATE_INVALID_OPTION')
      expect(error.message).toContain(`subject.${Object.keys(options)[0]}: expected`)
    },
  )
})

it.each([
  ['user:', 'an empty id'],
  ['user: ', 'an empty id'],
  ['user:\u00a0\t', 'an empty id'],
  ['user:undefined', 'the id undefined'],
  ['user:null', 'the id null'],
  ['user:NaN', 'the id NaN'],
  ['user:[object Object]', 'the id [object Object]'],
  ['user', 'no type:id'],
  [':7', 'no type:id'],
])('%j names nobody', (subject, why) => {
  expect(namesNobody(subject)).toBe(why)
})

it.each(['user:7', 'user: 7', 'user:void', 'user:nil', 'user:[7]', 'user:é', 'user:x:', 'user:undefined7'])(
  '%j names somebody',
  subject => {
    expect(namesNobody(subject)).toBeNull()
  },
)
