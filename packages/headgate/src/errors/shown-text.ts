/** Shows text from outside in messages, logs and answers: on one line, harmless to a terminal, without secrets. */

const SHOWN_LENGTH = 40
const SHOWN_NAME_LENGTH = 60
// Control characters, Unicode line ends, invisible characters that reverse direction, and lone surrogates.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu
// Words in the names of credentials.
const SECRET_WORDS = /key$|token|session|secret|passw|credential|bearer|cookie|jwt|^sid$/
const SUBJECT = /^([^:\s]{1,40}):(?=.)/
const CREDENTIALS = /\/\/[^/\s]*@/

/** Escapes everything that a terminal obeys or a page hides, as in `\u001b`. JSON stays valid JSON. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, found => {
    let escaped = ''
    for (let index = 0; index < found.length; index++) {
      escaped += `\\u${found.charCodeAt(index).toString(16).padStart(4, '0')}`
    }
    return escaped
  })
}

/** Whether a name suggests a secret: `apikey`, `X-Api-Key`, `access_token`, `session` and the like. */
export function looksSecret(name: string): boolean {
  return SECRET_WORDS.test(name.replace(/[^A-Za-z0-9]/g, '').toLowerCase())
}

/** Returns `apikey:*` for a subject whose type suggests a secret id, and any other text unchanged. */
function withoutSecretId(text: string): string {
  const type = SUBJECT.exec(text)?.[1]
  return type !== undefined && looksSecret(type) ? `${type}:*` : text
}

/** Shows a name from outside, such as a key of a map: bounded, and never the id of a secret subject. */
export function shownName(name: string): string {
  const text = withoutSecretId(name)
  return printable(text.length > SHOWN_NAME_LENGTH ? `${text.slice(0, SHOWN_NAME_LENGTH)}…` : text)
}

/** Quotes a text for a message: short, and never a recognisable secret. */
export function quoted(text: string): string {
  if (CREDENTIALS.test(text)) return 'a URL with credentials'
  const shown = withoutSecretId(text)
  return shown.length > SHOWN_LENGTH
    ? `a string of ${text.length} characters`
    : printable(JSON.stringify(shown))
}
