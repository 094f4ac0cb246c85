import { createLimiter, HeadgateError, memoryStore, slidingWindowLog, tier, tokenBucket } from 'headgate'
import { ConfigError, defineConfig, loadConfig, parseConfig } from 'headgate/config'
import { redisStore } from 'headgate/redis'
import { describe, expect, it } from 'vitest'

const api = slidingWindowLog({ limit: 1, window: '1m' })

async function rejectionOf(act: () => unknown): Promise<HeadgateError> {
  try {
    await act()
  } catch (error) {
    if (error instanceof HeadgateError) return error
    throw error
  }
  throw new Error('nothing was rejected')
}

describe('an error carries what is wrong as fields', () => {
  const limiter = () => createLimiter({ policies: { api } })
  it.each<[field: string, expected: string, got: string, act: () => unknown]>([
    ['limit', 'a whole number from 0 to 4294967295', '-1', () => slidingWindowLog({ limit: -1, window: 1 })],
    ['window', 'a duration from', '"soon"', () => slidingWindowLog({ limit: 1, window: 'soon' as '1m' })],
    ['refillPerSecond', 'a number', 'NaN', () => tokenBucket({ capacity: 1, refillPerSecond: Number.NaN })],
    ['maxKeys', 'a whole number from 1', '0', () => memoryStore({ maxKeys: 0 })],
    [
      'stroe',
      'one of store, policies',
      '"stroe"',
      () => createLimiter({ policies: { api }, stroe: 1 } as object),
    ],
    ['policies', 'at least one policy or tier', 'none', () => createLimiter({ policies: {} })],
    ['policy', 'one of api', '"login"', () => limiter().check('user:1', { policy: 'login' as 'api' })],
    ['cost', 'a whole number', '0.5', () => limiter().check('user:1', { policy: 'api', cost: 0.5 })],
    ['client', 'a Redis client', 'a value of type number', () => redisStore(5 as never)],
    ['fileName', 'the name of the policy file', 'undefined', () => parseConfig('', undefined as never)],
    ['missing.yaml', 'a file that can be read', 'no such file', () => loadConfig('missing.yaml')],
  ])('%s: expected %s; got %s', async (field, expected, got, act) => {
    const error = await rejectionOf(act)
    expect(error).toMatchObject({ field, expected: expect.stringContaining(expected), got })
    const hint = error.suggestion === undefined ? '' : `; did you mean "${error.suggestion}"?`
    expect(error.message).toBe(`${field}: expected ${error.expected}; got ${got}${hint}`)
  })

  it.each<[name: string, act: () => unknown]>([
    ['window', () => slidingWindowLog({ limit: 1, windw: '1m' } as never)],
    ['minute', () => tier({ minut: 3 } as never)],
    ['lease', () => createLimiter({ policies: { api: { limits: api, lese: 'auto' } as never } })],
    [
      'reason',
      () => limiter().overrides.set({ subject: 'user:1', ban: true, ttl: '1h', reson: '' } as never),
    ],
  ])('a misspelt option is told, with the one that was meant: %s', async (name, act) => {
    expect((await rejectionOf(act)).suggestion).toBe(name)
  })

  it('never a secret', async () => {
    const secret = 'canary'
    const subject = await rejectionOf(() => limiter().check(secret as 'user:1', { policy: 'api' }))
    const wrapped = { toString: () => secret } as unknown as string
    const option = await rejectionOf(() => createLimiter({ policies: { api }, subject: { secret: wrapped } }))
    const named = await rejectionOf(() => limiter().check('user:1', { policy: 'apikey:canary' as 'api' }))
    expect([subject.got, option.got, named.got]).toEqual([
      'a string of 6 characters',
      'a value of type object',
      '"apikey:*"',
    ])
    expect(JSON.stringify([subject, option, named])).not.toContain(secret)
  })

  it('none of them if it is about no value', () => {
    const error = new HeadgateError('ERR_HEADGATE_STORE', 'redis: gone')
    expect([error.field, error.expected, error.got]).toEqual([undefined, undefined, undefined])
    expect(error.message).toBe('redis: gone')
  })
})

describe('an issue of a policy file is what the library objects to', () => {
  /** A text like a message: whoever splits messages takes it apart in the wrong place. */
  const name = 'a: expected b; got c'

  it('in a file', async () => {
    const text = JSON.stringify({ policies: { [name]: [{ algorithm: 'token-bucket', capacity: name }] } })
    const error = await rejectionOf(() => parseConfig(text, 'headgate.json'))
    expect(error).toBeInstanceOf(ConfigError)
    const { issues } = error as ConfigError
    expect(issues.map(({ path, expected, got }) => ({ path, expected, got }))).toEqual([
      { path: expect.any(String), expected: expect.stringContaining('up to 32 letters'), got: `"${name}"` },
      { path: expect.stringMatching(/refillPerSecond$/), expected: expect.any(String), got: 'nothing' },
      {
        path: expect.stringMatching(/capacity$/),
        expected: 'a whole number from 0 to 4294967295',
        got: `"${name}"`,
      },
    ])
  })

  it('in code', async () => {
    const error = await rejectionOf(() => defineConfig({ policies: { [name]: api } }))
    expect((error as ConfigError).issues).toMatchObject([
      { expected: expect.stringContaining('up to 32 letters'), got: `"${name}"` },
    ])
  })
})
