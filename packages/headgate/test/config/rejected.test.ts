import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ConfigError, formatIssue } from '../../src/config/config-error.js'
import { parseConfig } from '../../src/config/parse-config.js'

const REJECTED = new URL('../fixtures/config/rejected/', import.meta.url)

async function issuesOf(text: string, fileName: string): Promise<string[]> {
  try {
    await parseConfig(text, fileName)
  } catch (error) {
    if (error instanceof ConfigError) return error.issues.map(formatIssue)
    throw error
  }
  return []
}

/**
 * Returns what a fixture expects: from the comments at its top, or for JSON, which has none, from a file beside it.
 */
function expectationsOf(name: string): string[] {
  const beside = name.endsWith('.json') ? name.replace(/\.json$/, '.expect.txt') : name
  const text = readFileSync(new URL(beside, REJECTED), 'utf8')
  return [...text.matchAll(/^# expect: (.*)$/gm)].map(match => match[1] as string)
}

describe('a policy file with a mistake is rejected, and every mistake is named with its place', () => {
  const fixtures = readdirSync(REJECTED).filter(name => !name.endsWith('.expect.txt'))
  it.each(fixtures)('every mistake of a policy file is named with its place: %s', async name => {
    const expected = expectationsOf(name)
    expect(expected).not.toEqual([])
    expect(await issuesOf(readFileSync(new URL(name, REJECTED), 'utf8'), name)).toEqual(expected)
  })
})
