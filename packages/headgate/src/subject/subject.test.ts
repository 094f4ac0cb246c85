import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isHeadgateError } from '../errors.js'
import { createSubjectNamer, type Subject, type SubjectInput } from './subject.js'

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
  it('is type:id, however it is written', () => {
    const nameSubject = createSubjectNamer()
    expect(nameSubject('user:42')).toBe('user:42')
    expect(nameSubject({ type: 'user', id: '42' })).toBe('user:42')
    expect(nameSubject('ip:2001:db8::1')).toBe('ip:2001:db8::1')
    expect(nameSubject({ type: 'ip', id: '2001:db8::1' })).toBe('ip:2001:db8::1')
  })

  it('is another for another subject: 100,000 hostile ones', () => {
    const nameSubject = createSubjectNamer()
    const seen = new Map<string, string>()
    fc.assert(
      fc.property(type, text, (type, id) => {
        const name = nameSubject({ type, id })
        const identity = JSON.stringify([type, id])
        const known = seen.get(name)
        if (known !== undefined && known !== identity) throw new Error(`${known} and ${identity} are ${name}`)
        seen.set(name, identity)
      }),
      { numRuns: 100_000 },
    )
  })

  it('cannot be forged by writing a digest as an id', () => {
    const nameSubject = createSubjectNamer()
    for (const id of ['x'.repeat(65), '~x', '~']) {
      const name = nameSubject({ type: 'user', id })
      expect(name).toMatch(/^user:~[0-9a-f]{32}$/)
      expect(nameSubject(name as SubjectInput)).not.toBe(name)
    }
  })

  it('keeps case, normal form and control characters apart', () => {
    const nameSubject = createSubjectNamer()
    const ids = ['é', 'e\u0301', 'É', 'a', 'A', 'a\0', 'a\r\n', 'a ', ' a']
    expect(new Set(ids.map(id => nameSubject({ type: 'user', id }))).size).toBe(ids.length)
  })

  it('stays short: an id of 64 is kept, one of 65 is a digest', () => {
    const nameSubject = createSubjectNamer()
    expect(nameSubject(`user:${'x'.repeat(64)}`)).toBe(`user:${'x'.repeat(64)}`)
    expect(nameSubject(`user:${'x'.repeat(65)}`)).toHaveLength('user:~'.length + 32)
    expect(nameSubject(`user:${'x'.repeat(1_000_000)}`)).toHaveLength('user:~'.length + 32)
  })

  it('is the same whether remembered or made anew', () => {
    const nameSubject = createSubjectNamer()
    const first = nameSubject(`apikey:${CANARY}`)
    for (let count = 0; count < 10_001; count++) nameSubject(`session:${count}`)
    expect(nameSubject(`apikey:${CANARY}`)).toBe(first)
    expect(createSubjectNamer()(`apikey:${CANARY}`)).toBe(first)
  })
})

describe('a secret', () => {
  it.each(['apikey', 'session'])('of type %s leaves only as a keyed hash', type => {
    const name = createSubjectNamer()({ type, id: CANARY })
    expect(name).toMatch(new RegExp(`^${type}:~[0-9a-f]{32}$`))
    expect(name).not.toContain(CANARY)
    expect(createSubjectNamer({ secret: 'another' })({ type, id: CANARY })).not.toBe(name)
  })

  it('may be of a type of your own', () => {
    const nameSubject = createSubjectNamer({ secretTypes: ['token'] })
    expect(nameSubject(`token:${CANARY}`)).not.toContain(CANARY)
    expect(nameSubject('apikey:public')).toBe('apikey:public')
  })

  it('never appears in an error, however wrongly it is passed', () => {
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
  ])('is refused by name: case %#', subject => {
    const error = errorOf(() => createSubjectNamer()(subject as Subject))
    expect(error.code).toBe('ERR_HEADGATE_INVALID_SUBJECT')
    expect(error.message).toMatch(/^subject: expected 'type:id' .*; got /)
  })

  it.each([{ secret: '' }, { secret: 5 }, { secretTypes: 'apikey' }, { secretTypes: [1] }])(
    'options %j are refused by name',
    options => {
      const error = errorOf(() => createSubjectNamer(options as never))
      expect(error.code).toBe('ERR_HEADGATE_INVALID_OPTION')
      expect(error.message).toContain(`subject.${Object.keys(options)[0]}: expected`)
    },
  )
})
