import { afterEach, expect, it, vi } from 'vitest'
import { createFindCaller, type Token } from '../src/admin/tokens.js'

afterEach(() => void vi.useRealTimers())

it('a token whose file has changed counts within five seconds, and the old one no longer', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const tokenOf = (secret: string): Token => ({ name: 'ada', role: 'administer', secret })
  let now: () => readonly Token[] = () => [tokenOf('the-second-secret')]
  const lines: string[] = []
  const find = createFindCaller(
    [tokenOf('the-first-secret')],
    async () => now(),
    line => lines.push(line),
  )
  const name = async (secret: string) => (await find?.(secret))?.name ?? null
  expect(await name('the-first-secret')).toBe('ada')
  expect(await name('the-second-secret')).toBeNull()
  vi.advanceTimersByTime(5_000)
  expect(await name('the-first-secret')).toBeNull()
  expect(await name('the-second-secret')).toBe('ada')
  now = () => {
    throw new Error('no such file')
  }
  vi.advanceTimersByTime(5_000)
  expect(await name('the-second-secret')).toBe('ada')
  expect(lines).toEqual([expect.stringMatching(/the last tokens stay in use: no such file/)])
})
