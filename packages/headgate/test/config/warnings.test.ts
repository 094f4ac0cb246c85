import { readdirSync, readFileSync } from 'node:fs'
import { expect, it, vi } from 'vitest'
import { formatIssue } from '../../src/config/config-error.js'
import { type ConfigWarning, parseConfig } from '../../src/config.js'

const IDLE = new URL('../fixtures/config/idle/', import.meta.url)

async function warningsOf(text: string, fileName: string): Promise<readonly ConfigWarning[]> {
  const warnings: ConfigWarning[] = []
  await parseConfig(text, fileName, { onWarning: warning => warnings.push(warning) })
  return warnings
}

it.each(readdirSync(IDLE))(
  'a part that never takes effect is reported with its place and code: %s',
  async name => {
    const text = readFileSync(new URL(name, IDLE), 'utf8')
    const expected = [...text.matchAll(/^# expect: (.*)$/gm)].map(match => match[1])
    expect(expected).not.toEqual([])
    const warnings = await warningsOf(text, name)
    expect(warnings.map(warning => `${formatIssue(warning)} ${warning.code}`)).toEqual(expected)
  },
)

it('a window that looks like milliseconds is reported once to the listener, and not on the console', async () => {
  const said = vi.spyOn(console, 'warn').mockImplementation(() => {})
  const text = readFileSync(new URL('windows-in-milliseconds.yaml', IDLE), 'utf8')
  expect(await warningsOf(text, 'a.yaml')).toHaveLength(3)
  expect(said).not.toHaveBeenCalled()
  await parseConfig(text, 'a.yaml')
  expect(said).toHaveBeenCalledOnce()
  said.mockRestore()
})

it('the default tiers and a file of nothing cause no warnings', async () => {
  expect(await warningsOf('{}', 'a.yaml')).toEqual([])
  expect(await warningsOf('tiers: default', 'a.yaml')).toEqual([])
})

it('a file that cannot be used has mistakes, and no warnings', async () => {
  const warnings: ConfigWarning[] = []
  const text = 'mode: shadwo\npolicies: { a: { algorithm: sliding-window-log, limit: 1, window: 1m } }'
  await expect(parseConfig(text, 'a.yaml', { onWarning: one => warnings.push(one) })).rejects.toThrow('mode')
  expect(warnings).toEqual([])
})
