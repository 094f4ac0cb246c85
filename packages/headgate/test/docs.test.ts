import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type ErrorCode, HeadgateError } from '../src/errors/headgate-error.js'
import { sourcesOf } from './support/sources.ts'

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const codesIn = (text: string, prefix: string): string[] => [
  ...new Set(text.match(new RegExp(`${prefix}_HEADGATE_[A-Z_]+`, 'g'))),
]

describe('the reference of errors', () => {
  const page = read('../../docs/reference/errors.md')

  it('the reference of errors explains every error code, and no other', () => {
    expect(codesIn(page, 'ERR').sort()).toEqual(codesIn(read('src/errors/headgate-error.ts'), 'ERR').sort())
  })

  it('the reference of errors has the anchor that `help` of an error leads to, and says what to do', () => {
    for (const code of codesIn(page, 'ERR') as ErrorCode[]) {
      const { help } = new HeadgateError(code, 'some message')
      const [address, anchor] = help.split('#')
      expect(address).toBe('https://unpkg.com/headgate/docs/errors.md')
      const row = page.split('\n').find(line => line.includes(`<a id="${anchor}"></a>`)) ?? ''
      expect(row, code).toMatch(new RegExp(`\`${code}\` \\| .+ \\| .+ \\|$`))
    }
  })

  it('the reference of errors explains every warning code, and no other', () => {
    const sources = sourcesOf(fileURLToPath(new URL('../src', import.meta.url)))
    const written = codesIn(sources.map(({ source }) => source).join('\n'), 'WARN')
    expect(codesIn(page, 'WARN').sort()).toEqual(written.sort())
  })
})
