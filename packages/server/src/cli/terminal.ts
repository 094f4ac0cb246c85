import { printable } from 'headgate/config'

/** Where a command speaks: answers and complaints. Nothing gets through that a terminal would obey. */
export interface Terminal {
  print(text: string): void
  complain(text: string): void
}

interface Writer {
  write(text: string): unknown
}

const CREDENTIALS = /(\/\/)[^/\s'"]*@/g

export function createTerminal(out: Writer, err: Writer): Terminal {
  return {
    print: text => void out.write(`${printableLines(text)}\n`),
    complain: text => void err.write(`${printableLines(withoutCredentials(text))}\n`),
  }
}

/** Our own text may have several lines; text of others was escaped when it was put into one. */
function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}

/** `http://user:password@host` without what stands before the @: complaints repeat what was typed. */
function withoutCredentials(text: string): string {
  return text.replace(CREDENTIALS, '$1***@')
}
