import { cleanText, printableLines } from '../log/clean-text.js'

/** Where a command writes answers and complaints. Control characters are escaped. */
export interface Terminal {
  print(text: string): void
  complain(text: string): void
}

interface Writer {
  write(text: string): unknown
}

export function createTerminal(out: Writer, err: Writer): Terminal {
  return {
    print: text => void out.write(`${printableLines(text)}\n`),
    complain: text => void err.write(`${cleanText(text)}\n`),
  }
}
