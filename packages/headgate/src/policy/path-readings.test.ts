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
    '/%256cogin',
    '/%25256cogin',
    '/lo%6%37in',
    '/a%252f..%252flogin',
    '/login%00',
    '/login%00/x.css',
    '/login%20',
    '/login%09%0d%0a',
    '/login%E3%80%80',
    '/login.',
    '/login%2e%20.',
    '/login::$DATA',
    '/login%3A%3a$data.',
    '/login:$I30:$INDEX_ALLOCATION/',
    '/a/..%20/login',
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
    ['/a%252fb', ['/a%252fb', '/a%2fb', '/a/b']],
    ['/%zz', ['/%zz']],
    ['/a//../b', ['/a//../b', '/a/b', '/a/../b', '/b']],
  ])('the readings of %s are %j', (target, paths) => {
    expect(new Set(readingsOf(target))).toEqual(new Set(paths))
  })

  it.each([
    ['/cgi-bin/login.py/x', '/cgi-bin/login.py'],
    ['/cgi-bin/login/x/y.css', '/cgi-bin/login'],
    ['/cgi-bin/admin/login/x', '/cgi-bin/admin/login'],
    ['/CGI-BIN/Login/x', '/cgi-bin/login'],
    ['/login.php/x', '/login.php'],
    ['/Login.PHP%2fx', '/login.php'],
    ['/login.php./x', '/login.php'],
    ['/login.php;a/x', '/login.php'],
    ['/a.php/login.aspx/x', '/a.php/login.aspx'],
  ])('what follows a script in %s may be its path info, so that it is %s', (target, script) => {
    expect(readingsOf(target)).toContain(script)
    expect(readingsOf(target)).not.toContain('/')
  })

  it.each([
    '/v1.2/users',
    '/users/joe@example.com/orders',
    '/files/report.pdf/versions',
    '/login.php',
    '/a:b/$c',
  ])('%s has one reading: nothing in it is a script with path info', target => {
    expect(readingsOf(target)).toEqual([target])
  })

  it('a path of nothing but scripts and blanks has a bounded number of readings, or none', () => {
    expect(pathReadings(`/${'a.php/'.repeat(2_000)}`)).toBeNull()
    expect(pathReadings(`/cgi-bin/${'a/'.repeat(2_000)}`)).toBeNull()
    expect(pathReadings(`/${'a.%20/'.repeat(2_000)}`)).toBeNull()
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
