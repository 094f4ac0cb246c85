import { InvalidArgumentError } from 'commander'

export function parsePort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new InvalidArgumentError(`expected a whole number from 0 to 65535; got "${text}".`)
}
