import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalPath, pathReadings } from './path-readings.js'

describe('the canonical path', () => {
  // Every spelling that some framework routes to /login.
  it.each([
    '/login',
    '/login/',
    '/LOGIN',
    '/%6cogin',
    '/%6Cogin',
    '/./login',
    '/a/../login',
    '/a/%2e%2e/login',
    '/a/%2E%2e/login',
    '/../login',
    '/login?x=1',
    '/login?',
    '/login#f',
    'http://x/login',
    'HTTPS://user@x:8080/login?y',
    '//login',
    '///login//',
    '/login;a=b',
    '/login;a=b?x=1',
    '\\login',
    `/${'x/../'.repeat(5_000)}login`,
  ])('of %.60s is /login', target => {
    expect(canonicalPath(target)).toBe('/login')
  })

  it.each([
    ['', '/'],
    ['/', '/'],
    ['*', '/*'],
    ['http://x', '/'],
    ['/..', '/'],
    ['/a%2fb', '/a%2fb'],
    ['/a%252fb', '/a%252fb'],
    ['/%2525', '/%2525'],
    ['/a%00', '/a%00'],
    ['/%zz', '/%zz'],
    ['/É', '/é'],
  ])('of %s is %s', (target, path) => {
    expect(canonicalPath(target)).toBe(path)
  })

  it('is its own canonical path, whatever it was made from, except for what decodes into an escape', () => {
    const piece = fc.constantFrom('a', 'B', '.', '..', '', ';x=1', '%41', '%2e', '%2f', 'é', '?q', '#f', '\\')
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), pieces => {
        const once = canonicalPath(`/${pieces.join('/')}`)
        expect(canonicalPath(once)).toBe(once)
        expect(pathReadings(once).at(-1)?.join('/')).toBe(once.slice(1))
        expect(once).not.toMatch(/\/\/|\/\.\.?(\/|$)|[?#;\\]|.\/$/)
      }),
      { numRuns: 2_000 },
    )
  })
})
