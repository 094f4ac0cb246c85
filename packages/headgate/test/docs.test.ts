import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const codesIn = (text: string, prefix: string): string[] => [
  ...new Set(text.match(new RegExp(`${prefix}_HEADGATE_[A-Z_]+`, 'g'))),
]

describe('the reference of errors', () => {
  const page = read('../../docs/reference/errors.md')

  it('explains every error code, and no other', () => {
    expect(codesIn(page, 'ERR').sort()).toEqual(codesIn(read('src/errors.ts'), 'ERR').sort())
  })

  it('explains every warning code, and no other', () => {
    expect(codesIn(page, 'WARN').sort()).toEqual(codesIn(read('src/store/redis/inspect.ts'), 'WARN').sort())
  })
})
