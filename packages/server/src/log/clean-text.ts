import { printable } from 'headgate/config'

const CREDENTIALS = /(\/\/)[^/\s'"]*@/g

/** Text that a terminal obeys nowhere. Ours may have several lines; that of others was escaped when it was put into one. */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}

/** The same without what stands before the @ of `redis://user:password@host`: complaints repeat what was typed. */
export function cleanText(text: string): string {
  return printableLines(text.replace(CREDENTIALS, '$1***@'))
}
