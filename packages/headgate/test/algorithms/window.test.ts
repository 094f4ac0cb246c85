import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
beforeEach(() => {
  // The warning is given once per process, so every test loads the module anew.
  vi.resetModules()
  warn.mockClear()
})
afterEach(() => vi.resetModules())

describe('a window that looks like milliseconds', () => {
  it('a window that looks like milliseconds is taken as seconds and warned of once, with a code and what to write', async () => {
    const { slidingWindowCounter, slidingWindowLog } = await import('../../src/index.js')
    expect(slidingWindowLog({ limit: 100, window: 60_000 }).windowUs).toBe(60_000_000_000)
    slidingWindowCounter({ limit: 100, window: 900_000 })
    expect(warn.mock.calls).toEqual([
      [expect.stringMatching(/^\[headgate\] WARN_HEADGATE_WINDOW_IN_SECONDS: window: 60000 /)],
    ])
    expect(warn.mock.calls[0]?.[0]).toContain(
      "60000 is a number of seconds, 16h40m. If milliseconds were meant, write '60s'",
    )
  })

  it.each([60, 900, 3_600, 86_400, 604_800, 1_500, '60000s', '1000ms'] as const)(
    'a window of %s does not look like milliseconds',
    async window => {
      const { slidingWindowLog } = await import('../../src/index.js')
      slidingWindowLog({ limit: 100, window })
      expect(warn).not.toHaveBeenCalled()
    },
  )
})
