import { digest } from './digest.js'

const DIGITS = 'abcdefghijklmnopqrstuvwxyz234567'
const LENGTH = 12

/**
 * Returns twelve characters that stand for a subject where its name must not be shown: in a refusal, so that
 * the caller can quote it, and in what operators see. Every process computes the same handle, and nobody can
 * construct a second subject with it. It is not a secret: anyone who guesses a name can check it against a
 * handle.
 */
export function handleOf(subject: string): string {
  const hex = digest('headgate handle', subject)
  let handle = ''
  // Five bits per character: four from its own hexadecimal digit, one from a digit further on.
  for (let index = 0; index < LENGTH; index++) {
    const four = Number.parseInt(hex[index] as string, 16)
    const one = Number.parseInt(hex[LENGTH + index] as string, 16) & 1
    handle += DIGITS[four * 2 + one]
  }
  return handle
}

const HANDLE = /^[a-z2-7]{12}$/

/** Whether a text can be a handle. It never is one if it contains a colon, as every subject does. */
export function isHandle(text: string): boolean {
  return HANDLE.test(text)
}
