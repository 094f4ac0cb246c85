/** One `logger` option wherever the library has something to say. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, vi } from 'vitest'
import { createEnforce } from '../src/adapters/enforce.js'
import { slidingWindowLog } from '../src/algorithms/sliding-window-log.js'
import { watchConfig } from '../src/config.js'
import { createLimiter } from '../src/limiter/limiter.js'
import type { Logger } from '../src/observe/logger.js'
import { keepLines } from './support/kept-lines.ts'
import { configOf } from './support/rule-config.ts'

const policies = { api: slidingWindowLog({ limit: 10, window: '1m' }) }

it('a limiter logs that a subject is hashed without a secret', async () => {
  const { logger, lines, fields } = keepLines()
  const limiter = createLimiter({ policies, logger })
  await limiter.check('apikey:canary-1234', { policy: 'api' })
  expect(lines).toEqual([expect.stringMatching(/^warn: WARN_HEADGATE_DEFAULT_SECRET: subject\.secret: /)])
  expect(fields).toEqual([{ code: 'WARN_HEADGATE_DEFAULT_SECRET' }])
  expect(lines.join()).not.toContain('canary')
})

it('a limiter logs an undefined tier, once a minute', async () => {
  const { logger, lines } = keepLines()
  const ruled = createLimiter({ config: configOf(), logger })
  for (let time = 0; time < 3; time++) await ruled.request({ subject: 'user:1', tier: 'gone' })
  await ruled.close()
  expect(lines).toEqual([
    expect.stringMatching(/^warn: tier: a request named "gone", .* treated as one without$/),
  ])
})

it('an adapter logs why a caller could not be looked up, and that its budget is shared', async () => {
  const { logger, lines, fields } = keepLines()
  const error = new Error('no session')
  const enforce = createEnforce(
    {
      limiter: createLimiter({ policies }),
      policy: 'api',
      logger,
      subject: () => {
        throw error
      },
    },
    {
      knowsPeer: false,
      read: () => ({ method: 'GET', url: '/', peer: undefined, route: undefined, header: () => undefined }),
      origin: (native: object) => native,
    },
  )
  expect(await enforce({})).toMatchObject({ allowed: true })
  expect(lines).toEqual([
    expect.stringMatching(/^warn: WARN_HEADGATE_NO_ADDRESS: /),
    'error: a caller could not be looked up, so its address was charged: no session',
  ])
  expect(fields).toEqual([{ code: 'WARN_HEADGATE_NO_ADDRESS' }, { err: error }])
})

it('a watched policy file logs why a change is not in force', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-logger-'))
  const file = join(folder, 'headgate.yaml')
  writeFileSync(file, 'tenant: one\n')
  const { logger, lines } = keepLines()
  const watched = await watchConfig(file, { onConfig: () => {}, logger })
  try {
    writeFileSync(file, 'tenat: two\n')
    await watched.reload()
    expect(lines).toEqual([
      expect.stringMatching(
        /^error: the last good policy file stays in force, because .*did you mean "tenant"/s,
      ),
    ])
    expect(watched.config.tenant).toBe('one')
  } finally {
    watched.close()
    rmSync(folder, { recursive: true })
  }
})

it('the default logger is the console', async () => {
  const said = vi.spyOn(console, 'warn').mockImplementation(() => {})
  const limiter = createLimiter({ policies })
  await limiter.check('apikey:canary-1234', { policy: 'api' })
  expect(said.mock.calls).toEqual([[expect.stringMatching(/^\[headgate\] WARN_HEADGATE_DEFAULT_SECRET: /)]])
  said.mockRestore()
})

it('a logger that cannot write is rejected', () => {
  const logger = { warn() {} } as unknown as Logger
  const rejection = expect.objectContaining({ code: 'ERR_HEADGATE_INVALID_OPTION', field: 'logger' })
  expect(() => createLimiter({ policies, logger })).toThrow(rejection)
  expect(() => createLimiter({ config: configOf(), logger })).toThrow(rejection)
})
