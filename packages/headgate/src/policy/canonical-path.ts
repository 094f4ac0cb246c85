/**
 * One spelling for all paths that some framework takes for the same route.
 *
 * Frameworks differ in what they fold together: case, a slash at the end, encoded letters, dot segments. A rule is
 * matched on a form that folds all of it, so that no spelling escapes a rule. It may match more than the framework
 * would; that only limits more.
 */

/** The canonical path of a request target: a path, one with a query, or an absolute URL. Begins with a slash. */
export function canonicalPath(target: string): string {
  const path = decodeUnreserved(withoutQuery(withoutOrigin(target))).toLowerCase()
  const segments: string[] = []
  for (const raw of path.split(/[/\\]/)) {
    const segment = withoutParameters(raw)
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return `/${segments.join('/')}`
}

function withoutOrigin(target: string): string {
  const match = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\\]*/i.exec(target)
  return match === null ? target : target.slice(match[0].length)
}

function withoutQuery(target: string): string {
  const end = target.search(/[?#]/)
  return end < 0 ? target : target.slice(0, end)
}

/** `/login;a=b` is `/login` to servers that know path parameters. */
function withoutParameters(segment: string): string {
  const semicolon = segment.indexOf(';')
  return semicolon < 0 ? segment : segment.slice(0, semicolon)
}

/** Once, and only what may stand unencoded: `%2f` is no slash to any router, and `%25` must not become a second turn. */
function decodeUnreserved(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (encoded, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return /[\w.~-]/.test(character) ? character : encoded
  })
}
