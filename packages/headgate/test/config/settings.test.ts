import { describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { configWithSettings, loadSettings } from '../../src/config/settings.js'
import { type ConfigError, defineConfig } from '../../src/config.js'

function issuesOf(environment: Record<string, string>): string[] {
  try {
    loadSettings(environment)
  } catch (error) {
    return (error as ConfigError).issues.map(({ path, message }) => `${path}: ${message}`)
  }
  return []
}

describe('settings from the environment', () => {
  it('settings say nothing when nothing is set, or set to nothing', () => {
    const nothing = { distributed: false, redisUrl: null, rulesPath: null, policy: null }
    expect(loadSettings({})).toEqual(nothing)
    expect(loadSettings({ RATE_LIMIT_REQUESTS: '', RATE_LIMIT_REDIS_URL: ' ', PATH: '/bin' })).toEqual(
      nothing,
    )
  })

  it('settings name Redis and the policy file', () => {
    const environment = {
      ENABLE_DISTRIBUTED_RATE_LIMITING: 'True',
      RATE_LIMIT_REDIS_URL: 'redis://:secret@host:6379/0',
      RATE_LIMIT_RULES_PATH: '/etc/headgate.yaml',
    }
    expect(loadSettings(environment)).toEqual({
      distributed: true,
      redisUrl: 'redis://:secret@host:6379/0',
      rulesPath: '/etc/headgate.yaml',
      policy: null,
    })
  })

  it.each([
    [{ RATE_LIMIT_GLOBAL_CAPACITY: '100', RATE_LIMIT_GLOBAL_REFILL_PER_SEC: '2.5' }, 100, 2.5],
    [{ RATE_LIMIT_GLOBAL_CAPACITY: '100' }, 100, 1],
    [{ RATE_LIMIT_GLOBAL_REFILL_PER_SEC: '2' }, 60, 2],
  ])('the settings %j are a bucket of %i refilled by %d', (environment, limit, refillPerSecond) => {
    expect(loadSettings(environment).policy?.limits).toMatchObject([
      { algorithm: { name: 'token-bucket' }, limit, refillPerSecond },
    ])
  })

  it('the settings of requests in a duration are a sliding window', () => {
    const { policy } = loadSettings({ RATE_LIMIT_REQUESTS: '100', RATE_LIMIT_DURATION: '60' })
    expect(policy?.limits).toMatchObject([
      { algorithm: { name: 'sliding-window-counter' }, id: 'counter-1m', limit: 100, windowUs: 60_000_000 },
    ])
  })

  it.each([
    ['300', 300],
    ['20', 100],
  ])('a setting of burst %s keeps both numbers', (burst, atMost) => {
    const environment = { RATE_LIMIT_REQUESTS: '100', RATE_LIMIT_DURATION: '50', RATE_LIMIT_BURST: burst }
    const quota = { limit: 100, windowUs: 50_000_000, burst: Number(burst) }
    expect(loadSettings(environment).policy?.limits).toMatchObject([
      { algorithm: { name: 'sliding-window-counter' }, limit: atMost, quota },
      { algorithm: { name: 'token-bucket' }, limit: Number(burst), refillPerSecond: 2, quota },
    ])
  })

  it('a ban stays a ban beside a burst', () => {
    const environment = { RATE_LIMIT_REQUESTS: '0', RATE_LIMIT_DURATION: '60', RATE_LIMIT_BURST: '5' }
    expect(loadSettings(environment).policy?.limits.map(({ limit }) => limit)).toEqual([0])
  })

  it('settings come before what the file says, and leave the rest of it', () => {
    const policies = { api: slidingWindowLog({ limit: 1, window: '1m' }) }
    const file = defineConfig({ policies, default: { policy: 'api' }, costs: { '/a': 2 } })
    expect(configWithSettings(loadSettings({}), file)).toEqual(file)
    const config = configWithSettings(loadSettings({ RATE_LIMIT_GLOBAL_CAPACITY: '7' }), file)
    expect(config).toMatchObject({ default: { policy: 'global' }, costs: file.costs })
    expect(Object.keys(config.policies)).toEqual(['api', 'global'])
  })
})

describe('a bad setting is rejected by its name, with all others', () => {
  it.each<[Record<string, string>, string[]]>([
    [
      { ENABLE_DISTRIBUTED_RATE_LIMITING: 'on' },
      [
        'RATE_LIMIT_REDIS_URL: expected the URL of Redis, since ENABLE_DISTRIBUTED_RATE_LIMITING is on; got nothing',
      ],
    ],
    [
      {
        ENABLE_DISTRIBUTED_RATE_LIMITING: 'maybe',
        RATE_LIMIT_REDIS_URL: 'http://:canary@host',
        RATE_LIMIT_GLOBAL_CAPACITY: '-1',
        RATE_LIMIT_GLOBAL_REFILL_PER_SEC: '0',
      },
      [
        'ENABLE_DISTRIBUTED_RATE_LIMITING: expected on or off; got "maybe"',
        'RATE_LIMIT_REDIS_URL: expected redis://, rediss://, redis-cluster:// or redis-sentinel:// and a host; got something else',
        'RATE_LIMIT_GLOBAL_CAPACITY: expected a whole number from 0 to 4294967295; got "-1"',
        'RATE_LIMIT_GLOBAL_REFILL_PER_SEC: expected a number above 0 and up to 4294967295000; got 0',
      ],
    ],
    [
      { RATE_LIMIT_REQUESTS: '1e3' },
      [
        'RATE_LIMIT_REQUESTS: expected a whole number from 0 to 4294967295; got "1e3"',
        "RATE_LIMIT_DURATION: expected a duration from '1ms' to '366d', such as '10s', '1m' or a number of seconds; got nothing",
      ],
    ],
    [
      { RATE_LIMIT_BURST: '5' },
      [
        'RATE_LIMIT_REQUESTS: expected a whole number from 0 to 4294967295; got nothing',
        "RATE_LIMIT_DURATION: expected a duration from '1ms' to '366d', such as '10s', '1m' or a number of seconds; got nothing",
      ],
    ],
    [
      { RATE_LIMIT_REQUESTS: '5', RATE_LIMIT_DURATION: '60', RATE_LIMIT_BURST: '0' },
      ['RATE_LIMIT_BURST: expected at least 1, or not to be set; got 0'],
    ],
    [
      { RATE_LIMIT_REQUESTS: '5', RATE_LIMIT_DURATION: '60', RATE_LIMIT_GLOBAL_CAPACITY: '5' },
      [
        'RATE_LIMIT_GLOBAL_CAPACITY: expected not to be set beside RATE_LIMIT_REQUESTS: one of them says what the limit is; got "5"',
      ],
    ],
  ])('a bad setting is rejected by its name, with all others: %j', (environment, issues) => {
    expect(issuesOf(environment)).toEqual(issues)
  })
})
