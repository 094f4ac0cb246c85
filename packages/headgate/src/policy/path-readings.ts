/**
 * Every way some server could read the path of a request, as segments.
 *
 * Frameworks differ in what they fold together: case, slashes at the end or doubled, encoded letters, dot segments, path
 * parameters, encoded slashes. A rule is matched against each reading, so that no spelling escapes it: `/a/../login` is
 * `/login` to one server and `/:x/:y/login` to another. It may match more than the framework would; that only limits
 * more. Almost every request has one reading.
 */

/** The readings of a request target: a path, one with a query, or an absolute URL. The plainest is the last. */
export function pathReadings(target: string): readonly (readonly string[])[] {
  const path = withoutQuery(withoutOrigin(target)).toLowerCase()
  const literal = decode(path, UNRESERVED)
    .split('/')
    .slice(path.startsWith('/') ? 1 : 0)
  while (literal.at(-1) === '') literal.pop()
  const readings = [literal]
  if (!literal.some(needsFolding)) return readings
  // `new URL(target, base)` takes what follows two slashes for a host, and the path begins after it.
  const afterHost = AUTHORITY.exec(path)?.[1]
  if (afterHost !== undefined)
    readings.push(fold(decode(afterHost, ANYTHING)), fold(decode(afterHost, UNRESERVED)))
  readings.push(fold(decode(path, ANYTHING)), fold(decode(path, UNRESERVED)))
  return readings
}

/** The path in its plainest spelling: what is left of it when everything is folded. */
export function canonicalPath(target: string): string {
  return `/${pathReadings(target).at(-1)?.join('/') ?? ''}`
}

function needsFolding(segment: string): boolean {
  return segment === '' || segment === '.' || segment === '..' || /[%;\\]/.test(segment)
}

/** Dot segments resolved, doubled slashes and path parameters gone: `/login;a=b` is `/login` to some servers. */
function fold(path: string): string[] {
  const segments: string[] = []
  for (const raw of path.split(/[/\\]/)) {
    const semicolon = raw.indexOf(';')
    const segment = semicolon < 0 ? raw : raw.slice(0, semicolon)
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return segments
}

function withoutOrigin(target: string): string {
  const match = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\\]*/i.exec(target)
  return match === null ? target : target.slice(match[0].length)
}

function withoutQuery(target: string): string {
  const end = target.search(/[?#]/)
  return end < 0 ? target : target.slice(0, end)
}

const AUTHORITY = /^[/\\]{2,}[^/\\]*(.*)$/s
const UNRESERVED = /[\w.~-]/
const ANYTHING = /[^%]/

/** Once: `%25` must not become a second turn. */
function decode(path: string, wanted: RegExp): string {
  if (!path.includes('%')) return path
  return path.replace(/%([0-9a-f]{2})/g, (encoded, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16)).toLowerCase()
    return wanted.test(character) ? character : encoded
  })
}
