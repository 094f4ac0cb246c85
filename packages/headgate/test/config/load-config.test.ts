import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../src/config/load-config.js'
import { parseConfig } from '../../src/config/parse-config.js'
import { isHeadgateError } from '../../src/errors/headgate-error.js'

const folder = mkdtempSync(join(tmpdir(), 'headrule-config-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function write(name: string, content: string | Buffer): string {
  const file = join(folder, name)
  writeFileSync(file, content)
  return file
}

it('a file is read from disk, as YAML or by its name as JSON', async () => {
  expect((await loadConfig(write('a.yaml', 'mode: shadow'))).mode).toBe('shadow')
  expect((await loadConfig(write('a.json', '\uFEFF{ "mode": "shadow" }'))).mode).toBe('shadow')
})

describe('a file that cannot be read is rejected', () => {
  it.each<[string, () => string, string]>([
    ['a folder', () => folder, 'expected a file; got a folder'],
    ['missing', () => join(folder, 'missing.yaml'), 'got no such file'],
    [
      'above one megabyte',
      () => write('large.yaml', '# large\n'.repeat(300_000)),
      'expected at most 1048576 bytes; got more',
    ],
    ['not UTF-8', () => write('latin1.yaml', Buffer.from('tiers: \xe9', 'latin1')), 'expected text in UTF-8'],
  ])('a file that cannot be read is rejected because it is %s', async (_name, make, message) => {
    const error: unknown = await loadConfig(make()).catch((error: unknown) => error)
    expect(isHeadgateError(error) && error.code).toBe('ERR_HEADGATE_UNREADABLE_CONFIG')
    expect((error as Error).message).toContain(message)
  })
})

/** Measures the best of some runs in processor time, which a busy machine does not stretch. */
async function processorMs(run: () => Promise<unknown>, runs = 3): Promise<number> {
  const tookMs: number[] = []
  for (let time = 0; time < runs; time++) {
    const began = process.cpuUsage()
    await run()
    const { user, system } = process.cpuUsage(began)
    tookMs.push((user + system) / 1_000)
  }
  return Math.min(...tookMs)
}

/** Reads a file of many keys, none of which is valid. */
async function readKeys(keys: number): Promise<void> {
  const text = Array.from({ length: keys }, (_, index) => `k${index}: 1`).join('\n')
  await expect(parseConfig(text, 'a.yaml')).rejects.toThrow('and ')
}

describe('a text that is cheap to write and expensive to read ends with a typed error', () => {
  let plainMs: number
  beforeAll(async () => {
    plainMs = await processorMs(() => readKeys(5_000))
  })
  const bomb = `${Array.from({ length: 9 }, (_, level) =>
    level === 0
      ? 'a0: &a0 [x, x, x, x, x, x, x, x, x]'
      : `a${level}: &a${level} [${new Array(9).fill(`*a${level - 1}`).join(', ')}]`,
  ).join('\n')}\n`
  it.each<[string, string, string]>([
    ['an alias bomb of nine levels', 'a.yaml', bomb],
    ['20,000 brackets', 'a.yaml', '['.repeat(20_000)],
    ['20,000 brackets in JSON', 'a.json', '['.repeat(20_000)],
    ['20,000 brackets in valid JSON', 'a.json', '['.repeat(20_000) + ']'.repeat(20_000)],
    ['a token out of place after half a megabyte', 'a.json', `["${'b'.repeat(500_000)}",]`],
    ['20,000 dashes', 'a.yaml', '- '.repeat(20_000)],
    [
      '4,000 merges',
      'a.yaml',
      Array.from({ length: 4_000 }, (_, at) => `k${at}: &m${at} { <<: *m${at - 1} }`).join('\n'),
    ],
    ['two megabytes', 'a.yaml', 'a: b\n'.repeat(400_000)],
    ['two megabytes of JSON', 'a.json', `{"a":"${'b'.repeat(2_000_000)}"}`],
    ['a path of 500,000 segments', 'a.json', `{"costs":{"${'/a'.repeat(500_000)}(":1}}`],
    ['a path of 500,000 dots', 'a.json', `{"costs":{"POST /${'.'.repeat(500_000)}(":1}}`],
    ['a key twice', 'a.yaml', 'mode: shadow\nmode: enforce\n'],
    ['a megabyte in one text', 'a.json', `{"mode":"${'\\u0061'.repeat(170_000)}"}`],
  ])(
    'a text that is cheap to write takes no longer to reject than 5,000 plain lines: %s',
    async (_name, file, text) => {
      const tookMs = await processorMs(async () => {
        const error: unknown = await parseConfig(text, file).catch((error: unknown) => error)
        expect(isHeadgateError(error)).toBe(true)
      })
      expect(tookMs).toBeLessThan(plainMs)
    },
  )

  it('10,000 distinct keys are read in a time that grows with their number', async () => {
    // Comparing every key with every other would take a hundred times as long.
    const fewMs = await processorMs(() => readKeys(1_000))
    expect((await processorMs(() => readKeys(10_000), 1)) / fewMs).toBeLessThan(50)
  })
})

it.each([
  ['escaped quotes', String.raw`{ "subjects": { "user:\": \"x\": ": { "tier": "pro" } } }`],
  ['blanks around a colon', '{ "mode"\n\t:\n "shadow" }'],
  ['the same key in two maps', '{ "tiers": { "anonymous": { "minute": 1 }, "pro": { "minute": 2 } } }'],
  [
    'a text like a key',
    '{ "subjects": { "user:a": { "tier": "pro" }, "user:{\\"b\\": 1}": { "tier": "pro" } } }',
  ],
])('no key of JSON is taken for one that is there twice: %s', async (_name, text) => {
  await expect(parseConfig(text, 'a.json')).resolves.toBeDefined()
})

describe('where the package yaml is not installed', () => {
  const dist = fileURLToPath(new URL('../../dist', import.meta.url))
  const alone = join(folder, 'alone')
  cpSync(dist, alone, { recursive: true })
  writeFileSync(join(alone, 'package.json'), '{ "type": "module" }')

  async function run(source: string): Promise<string> {
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', source], {
      cwd: alone,
    })
    return stdout.trim()
  }

  it('a configuration in code and one in JSON work without the package yaml', async () => {
    const source = `
      import { defineConfig, parseConfig } from './config.js'
      const config = await parseConfig('{ "mode": "shadow" }', 'a.json')
      console.log(config.mode, defineConfig({ mode: 'shadow' }).mode)`
    expect(await run(source)).toBe('shadow shadow')
  })

  it('a mistake in JSON has a path but no line where the package yaml is not installed', async () => {
    const source = `
      import { parseConfig } from './config.js'
      for (const text of ['{ "mode": "shadwo" }', '{ "mode": "shadow", "mode": "enforce" }', '{ "mode": }'])
        await parseConfig(text, 'a.json').catch(error => console.log(error.code, error.message))`
    const rejected = (problem: string) =>
      `ERR_HEADGATE_INVALID_CONFIG a.json cannot be used: 1 problem\n  a.json:${problem}`
    expect(await run(source)).toBe(
      [
        rejected(' mode: expected one of enforce, shadow, compare; got "shadwo"; did you mean "shadow"?'),
        rejected(' expected each key once; got one of them again'),
        rejected('1:11 expected valid JSON; got "}"'),
      ].join('\n'),
    )
  })

  it('a configuration in YAML says what to install where the package yaml is not', async () => {
    const source = `
      import { parseConfig } from './config.js'
      await parseConfig('{}', 'headgate.yaml').catch(error => console.log(error.code, error.message))`
    expect(await run(source)).toBe(
      'ERR_HEADGATE_MISSING_PACKAGE headgate.yaml: expected the package yaml to read it; got none: run npm install yaml',
    )
  })
})
