/** Runs the built library, because a thread needs a file to run. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, expect, it } from 'vitest'
import { ConfigError, parseConfig, watchConfig } from '../../dist/config.js'
import type { Config } from '../../dist/index.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-watch-'))
const file = join(folder, 'headgate.yaml')
afterAll(() => rmSync(folder, { recursive: true }))

function fileOf(rules: number): string {
  const lines = Array.from(
    { length: rules },
    (_, index) => `  - { name: r${index}, match: { path: /things${index}/:id }, tier: pro }`,
  )
  const parts = '{ algorithm: sliding-window-counter, limit: 5, window: 1m, buckets: 6 }'
  const tried = `{ limits: [${parts}], candidate: { algorithm: concurrency, limit: 3 } }`
  const policies = `policies: { api: { algorithm: token-bucket, capacity: 5, refillPerSecond: 1 }, tried: ${tried} }`
  const subjects = 'subjects: { "user:42": { tier: pro } }'
  return [policies, subjects, 'costs: { /a: 2 }', 'rules:', ...lines, ''].join('\n')
}

it('a large file that changed is read beside the requests, to the same configuration and the same mistakes', async () => {
  writeFileSync(file, fileOf(1))
  const told: (Config | ConfigError)[] = []
  const doubted: string[] = []
  const watched = await watchConfig(file, {
    onConfig: config => told.push(config),
    onError: error => told.push(error as ConfigError),
    onWarning: ({ path }) => doubted.push(path),
    pollMs: 3_600_000,
  })
  const delay = monitorEventLoopDelay({ resolution: 1 })
  try {
    expect(doubted.splice(0)).toContain('policies.api')
    writeFileSync(file, fileOf(3_000))
    delay.enable()
    const began = performance.now()
    await watched.reload()
    delay.disable()
    // Parsed on this thread, the delay would be the whole time.
    expect(delay.max / 1e6).toBeLessThan((performance.now() - began) / 2)
    expect(told.at(-1)).toEqual(await parseConfig(fileOf(3_000), file))
    expect(doubted).toContain('policies.api')
    writeFileSync(file, `${fileOf(3_000)}brocken: 1\n`)
    await watched.reload()
    const error = told.at(-1) as ConfigError
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.issues).toMatchObject([{ line: 3_005, column: 1, path: 'brocken' }])
    expect(watched.isStale).toBe(true)
    expect(watched.config.rules).toHaveLength(3_000)
  } finally {
    watched.close()
  }
})
