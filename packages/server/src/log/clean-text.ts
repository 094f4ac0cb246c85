import { printable } from 'headgate/internal'

const CREDENTIALS = /(\/\/)[^/\s'"]*@/g

/**
 * Escapes control characters. Our own text may have several lines; foreign text was escaped when it was put into
 * one.
 */
export function printableLines(text: string): string {
  return text.split('\n').map(printable).join('\n')
}

/** Also removes the part before the @ of `redis://user:password@host`, because complaints repeat what was typed. */
export function cleanText(text: string): string {
  return printableLines(text.replace(CREDENTIALS, '$1***@'))
}
