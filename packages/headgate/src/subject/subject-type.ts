/** Returns the spelling in which a type is compared and stored: A to Z in lower case. */
export function foldType(type: string): string {
  return type.replace(/[A-Z]/g, letter => letter.toLowerCase())
}

/** Returns the type in a subject's name, `type:id`. */
export function typeOf(name: string): string {
  return name.slice(0, name.indexOf(':'))
}
