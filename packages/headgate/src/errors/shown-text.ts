/**
 * How text from outside is shown in messages, logs and answers: on one line, harmless to a terminal, without secrets.
 */

const SHOWN_LENGTH = 40
const SHOWN_NAME_LENGTH = 60
// Control characters, line ends of Unicode, invisible ones that turn the direction of what follows, halves of pairs.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu
// Words in the names of things that let their owner in.
const SECRET_WORDS = /key$|token|session|secret|passw|credential|bearer|cookie|jwt|^sid$/
const SUBJECT = /^([^:\s]{1,40}):(?=.)/
const CREDENTIALS = /\/\/[^/\s]*@/

/** The text with everything that a terminal obeys or a page hides written as `\u001b`; inside JSON it stays JSON. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, found => {
    let escaped = ''
    for (let index = 0; index < found.length; index++) {
      escaped += `\\u${found.charCodeAt(index).toString(16).padStart(4, '0')}`
    }
    return escaped
  })
}

/**
 * Whether what goes by this name looks like a secret: `apikey`, `X-Api-Key`, `access_token`, `session` and the like.
 */
export function looksSecret(name: string): boolean {
  return SECRET_WORDS.test(name.replace(/[^A-Za-z0-9]/g, '').toLowerCase())
}

/** `apikey:*` for a subject whose type says that its id is a secret; any other text as it is. */
function withoutSecretId(text: string): string {
  const type = SUBJECT.exec(text)?.[1]
  return type !== undefined && looksSecret(type) ? `${type}:*` : text
}

/** A name from outside, such as a key of a map: bounded, and never the id of a secret subject. */
export function shownName(name: string): string {
  const text = withoutSecretId(name)
  return printable(text.length > SHOWN_NAME_LENGTH ? `${text.slice(0, SHOWN_NAME_LENGTH)}…` : text)
}

/** A text in quotes for a message: short, and never a secret that can be told by its looks. */
export function quoted(text: string): string {
  if (CREDENTIALS.test(text)) return 'a URL with credentials'
  const shown = withoutSecretId(text)
  return shown.length > SHOWN_LENGTH
    ? `a string of ${text.length} characters`
    : printable(JSON.stringify(shown))
}
