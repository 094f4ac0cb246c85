import { digest } from './digest.js'

const DIGITS = 'abcdefghijklmnopqrstuvwxyz234567'
const LENGTH = 12

/**
 * Twelve characters that stand for a subject where its name is not to be shown: in a refusal, so that whoever was refused
 * can say which it was, and in what operators look at. The same in every process, and nobody can make another subject with
 * the same one. It is no secret: whoever can guess a name can find out whether a handle is its.
 */
export function handleOf(subject: string): string {
  const hex = digest('headgate handle', subject)
  let handle = ''
  // Five bits a character: four of its own hexadecimal digit, one of a digit behind those.
  for (let index = 0; index < LENGTH; index++) {
    const four = Number.parseInt(hex[index] as string, 16)
    const one = Number.parseInt(hex[LENGTH + index] as string, 16) & 1
    handle += DIGITS[four * 2 + one]
  }
  return handle
}

const HANDLE = /^[a-z2-7]{12}$/

/** Whether a text can be a handle. A subject has a colon. */
export function isHandle(text: string): boolean {
  return HANDLE.test(text)
}
