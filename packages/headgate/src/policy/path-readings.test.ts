import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pathReadings } from './path-readings.js'

/** Returns every reading as a path, in its own case and folded. */
function readingsOf(target: string): string[] {
  const readings = pathReadings(target) ?? []
  return [
    ...new Set(
      readings.flatMap(({ segments, folded }) => [segments, folded]).map(path => `/${path.join('/')}`),
    ),
  ]
}

describe('the readings of a path', () => {
  it('the readings of a path include slashes merged both before and after dots are resolved', () => {
    expect(readingsOf('/a//..//login')).toEqual(expect.arrayContaining(['/login', '/a/login', '/a//login']))
  })

  // Spellings that some server routes to /login.
  it.each([
    '/login',
    '/login/',
    '/LOGIN',
    '/%6cogin',
    '/%6Cogin',
    '/./login',
    '/login/.',
    '/a/../login',
    '/a/%2e%2e/login',
    '/a/%2E%2e/login',
    '/../login',
    '/login?x=1',
    '/login?',
    '/login#f',
    '/login#f?x',
    'http://x/login',
    'HTTPS://user@x:8080/login?y',
    'http:///x/login',
    'http:///u@x\\login',
    '*login',
    '//login',
    '///login//',
    '//x/login',
    '/\\x\\login',
    '/login;a=b',
    '/login;a=b?x=1',
    '/login;a/b',
    '/a;x/../login',
    '/a%2f..%2flogin',
    '/login%3fx',
    '/login%3Ba/b',
    '\\login',
    '/log%C4%B1n/../login',
    `/${'x/../'.repeat(5_000)}login`,
  ])('%.60s is /login in one reading', target => {
    expect(readingsOf(target)).toContain('/login')
  })

  it.each([
    ['', ['/']],
    ['/', ['/']],
    ['http://x', ['/']],
    ['/api/users/42', ['/api/users/42']],
    ['/api/users/42?x=/../y', ['/api/users/42']],
    ['/login/', ['/login/', '/login']],
    ['/Login', ['/Login', '/login']],
    ['/to%E2%84%AAen', ['/to%E2%84%AAen', '/to%e2%84%aaen', '/to\u212aen', '/token']],
    ['/users//export', ['/users//export', '/users/export']],
    ['/token;a/b', ['/token;a/b', '/token', '/token/b']],
    ['/a#b/c', ['/a', '/a#b/c']],
    ['/a%2fb', ['/a%2Fb', '/a%2fb', '/a/b']],
    ['/a%252fb', ['/a%252fb', '/a%2fb']],
    ['/%zz', ['/%zz']],
    ['/a//../b', ['/a//../b', '/a/b', '/a/../b', '/b']],
  ])('the readings of %s are %j', (target, paths) => {
    expect(new Set(readingsOf(target))).toEqual(new Set(paths))
  })

  it('the readings of a path are bounded in number, or there are none at all', () => {
    const piece = fc.constantFrom(
      'a',
      'B',
      '.',
      '..',
      '',
      ';x=1',
      '%41',
      '%2e',
      '%2f',
      '%5c',
      '%3b',
      'é',
      '?q',
      '#f',
      '\\',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), pieces => {
        const readings = pathReadings(`/${pieces.join('/')}`)
        if (readings !== null) expect(readings.length).toBeLessThanOrEqual(100)
      }),
      { numRuns: 1_000 },
    )
    expect(pathReadings(`/${'%2e;\\#//..'.repeat(2_000)}`)).toBeNull()
  })
})
