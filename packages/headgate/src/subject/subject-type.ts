import { ANONYMOUS } from './names-nobody.js'

/** Returns the spelling in which a type is compared and stored: A to Z in lower case. */
export function foldType(type: string): string {
  return type.replace(/[A-Z]/g, letter => letter.toLowerCase())
}

/**
 * Returns the type by which rules know a subject's name, `type:id`: whoever has no address is held to the limits of
 * one.
 */
export function typeOf(name: string): string {
  if (name === ANONYMOUS) return 'ip'
  return name.slice(0, name.indexOf(':'))
}
