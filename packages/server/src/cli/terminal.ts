import { cleanText, printableLines } from '../log/clean-text.js'

/** Where a command writes answers and complaints. Control characters are escaped. */
export interface Terminal {
  print(text: string): void
  /** Bytes that were printed and that nobody has read yet. */
  readonly unreadBytes: number
  complain(text: string): void
  /** Replaces what is on the screen; prints, if it is no screen. */
  redraw(lines: readonly Line[]): void
}

/** A line of a screen, and how it stands out. */
export interface Line {
  readonly text: string
  readonly style?: 'bold' | 'dim' | 'red'
}

interface Writer {
  write(text: string): unknown
  readonly writableLength?: number
  readonly isTTY?: boolean
}

const CLEAR = '\u001b[H\u001b[J'
const STYLES = { bold: '1', dim: '2', red: '31' }

export function createTerminal(out: Writer, err: Writer): Terminal {
  return {
    print: text => void out.write(`${printableLines(text)}\n`),
    get unreadBytes() {
      return out.writableLength ?? 0
    },
    complain: text => void err.write(`${cleanText(text)}\n`),
    redraw(lines) {
      const isScreen = out.isTTY === true
      const hasColour = isScreen && !process.env.NO_COLOR
      const text = lines.map(({ text: line, style }) => {
        const shown = printableLines(line)
        return hasColour && style !== undefined ? `\u001b[${STYLES[style]}m${shown}\u001b[0m` : shown
      })
      out.write(`${isScreen ? CLEAR : ''}${text.join('\n')}\n`)
    },
  }
}
