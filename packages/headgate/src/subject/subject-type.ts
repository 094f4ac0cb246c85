/** A type in the one spelling in which it is compared and stored: without regard to the case of A to Z. */
export function foldType(type: string): string {
  return type.replace(/[A-Z]/g, letter => letter.toLowerCase())
}
