import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { askStore } from '../../src/store/ask-store.ts'
import type { RedisConnection } from '../../src/store/redis/connection.js'
import { createInspection, type StoreWarning } from '../../src/store/redis/inspect.js'
import type { RunScript } from '../../src/store/redis/script-runner.js'
import { systemClock } from '../../src/time/clock.js'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { sendCommand } from '../support/resp.ts'
import { one } from './questions.ts'
import { LIBRARIES, singleClient } from './topologies.ts'

let server: RedisProcess
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

async function warningsOf(
  make: ReturnType<typeof singleClient>,
  library: (typeof LIBRARIES)[number],
): Promise<StoreWarning[]> {
  const warnings: StoreWarning[] = []
  const onWarning = (warning: StoreWarning) => void warnings.push(warning)
  const store = directRedisStore(make(library).client, { deadlineMs: 5_000, onWarning })
  // However often ready() is called, the server is inspected once.
  await Promise.all([store.ready(), store.ready()])
  await store.ready()
  await Promise.resolve(askStore(store, one('user:1'))).catch(() => {})
  await store.close()
  return warnings
}

describe.each(LIBRARIES)('inspecting the server, with %s', library => {
  it('inspecting a well configured server finds nothing to warn about', async () => {
    expect(await warningsOf(singleClient(server.port), library)).toEqual([])
  })

  it.each(['allkeys-lru', 'allkeys-random', 'volatile-lru', 'volatile-ttl'])(
    'the look at the server warns once of the eviction policy %s',
    async policy => {
      await sendCommand(server.port, 'CONFIG', 'SET', 'maxmemory-policy', policy)
      const warnings = await warningsOf(singleClient(server.port), library)
      await sendCommand(server.port, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
      expect(warnings).toEqual([
        { code: 'WARN_HEADGATE_EVICTION_POLICY', message: expect.stringContaining(policy) },
      ])
    },
  )

  it('inspecting the server warns once of a user who may not run scripts', async () => {
    const user = { username: 'reader', password: 'secret' }
    await sendCommand(server.port, 'ACL', 'SETUSER', 'reader', 'on', '>secret', '~*', '+@all', '-@scripting')
    const warnings = await warningsOf(singleClient(server.port, { ioredis: user, nodeRedis: user }), library)
    expect(warnings.map(({ code }) => code)).toEqual(['WARN_HEADGATE_SCRIPTS_FORBIDDEN'])
    expect(JSON.stringify(warnings)).not.toContain('secret')
  })

  it('inspecting the server names the commands that a user lacks, as they can be pasted', async () => {
    const user = { username: 'lacking', password: 'secret' }
    const acl = (...words: string[]) => sendCommand(server.port, 'ACL', 'SETUSER', 'lacking', ...words)
    await acl('on', '>secret', '~*', '+@all', '-incrby', '-hset')
    const lacking = singleClient(server.port, { ioredis: user, nodeRedis: user })
    const [warning, ...others] = await warningsOf(lacking, library)
    expect(others).toEqual([])
    expect(warning?.code).toBe('WARN_HEADGATE_COMMANDS_FORBIDDEN')
    const words = /ACL SETUSER <user> (.*)$/.exec(warning?.message ?? '')?.[1]?.split(' ') ?? []
    expect(words).toEqual(['+hset', '+incrby'])
    await acl(...words)
    expect(await warningsOf(lacking, library)).toEqual([])
  })

  it('inspecting the server warns on the console without a logger', async () => {
    const said = vi.spyOn(console, 'warn').mockImplementation(() => {})
    await sendCommand(server.port, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    const store = directRedisStore(singleClient(server.port)(library).client, { deadlineMs: 5_000 })
    await store.ready()
    await store.close()
    await sendCommand(server.port, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    expect(said.mock.calls).toEqual([[expect.stringContaining('[headgate] WARN_HEADGATE_EVICTION_POLICY')]])
    said.mockRestore()
  })
})

describe('a server known by its INFO text alone', () => {
  async function warningsFor(connection: Partial<RedisConnection>): Promise<string[]> {
    const codes: string[] = []
    const whole: RedisConnection = { evalsha: async () => [], eval: async () => [], ...connection }
    const warn = ({ code }: StoreWarning): void => void codes.push(code)
    const run: RunScript = ({ sha }, keys, args) => whole.evalsha(sha, keys, args)
    await createInspection({
      connection: whole,
      run,
      prefix: 'ratelimit',
      warn,
      clock: systemClock,
    }).lookOnce()
    return codes
  }
  const info = (version: string) => async () =>
    `# Server\r\nredis_version:${version}\r\nmaxmemory_policy:noeviction\r\n`

  it.each([
    ['5.0.14', ['WARN_HEADGATE_REDIS_VERSION']],
    ['6.0.20', ['WARN_HEADGATE_REDIS_VERSION']],
    ['6.2.0', []],
    ['6.10.1', []],
    ['7.0.15', []],
    ['10.0.0', []],
  ])('a server is judged by its version: %s', async (version, codes) => {
    expect(await warningsFor({ info: info(version) })).toEqual(codes)
  })

  it('a server that may not be inspected causes no warning', async () => {
    expect(await warningsFor({})).toEqual([])
    expect(await warningsFor({ info: () => Promise.reject(new Error('NOPERM')) })).toEqual([])
    expect(await warningsFor({ info: async () => '' })).toEqual([])
  })

  it('a server that is merely away causes no warning', async () => {
    const away = () => Promise.reject(new Error('connect ECONNREFUSED'))
    expect(await warningsFor({ evalsha: away, eval: away, info: away })).toEqual([])
  })

  it.each([
    "NOPERM this user has no permissions to run the 'evalsha' command",
    "ERR unknown command 'EVALSHA', with args beginning with:",
    "ERR The user executing the script can't run this command or subcommand script: 1234",
  ])('a server that rejects scripts causes a warning: %s', async message => {
    const reject = () => Promise.reject(new Error(message))
    expect(await warningsFor({ evalsha: reject, eval: reject })).toEqual(['WARN_HEADGATE_SCRIPTS_FORBIDDEN'])
  })
})
