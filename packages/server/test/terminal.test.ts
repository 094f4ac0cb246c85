import { afterEach, expect, it, vi } from 'vitest'
import { createTerminal } from '../src/cli/terminal.js'

afterEach(() => void vi.unstubAllEnvs())

function drawn(isTTY: boolean): string {
  let text = ''
  const write = (more: string) => {
    text += more
  }
  createTerminal({ write, isTTY }, { write }).redraw([{ text: 'a \u001b[2J', style: 'red' }, { text: 'b' }])
  return text
}

it('a screen is redrawn in place with colour, and control characters of others are escaped', () => {
  vi.stubEnv('NO_COLOR', '')
  expect(drawn(true).startsWith('\u001b[H\u001b[J\u001b[31ma ')).toBe(true)
  expect(drawn(true).endsWith('\u001b[0m\nb\n')).toBe(true)
  expect(drawn(true)).not.toContain('\u001b[2J')
  vi.stubEnv('NO_COLOR', '1')
  expect(drawn(true)).not.toContain('[31m')
})

it('what is no screen gets plain lines', () => {
  expect(drawn(false)).not.toContain('\u001b')
})
