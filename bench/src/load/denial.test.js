import { expect, it } from 'vitest'
import { faultOfDenial } from './denial.js'

const HEAD = [
  'HTTP/1.1 429 Too Many Requests',
  'X-RateLimit-Limit: 10',
  'X-RateLimit-Remaining: 0',
  'X-RateLimit-Reset: 1800000000',
  'X-RateLimit-Policy: api',
  'Retry-After: 1',
  'Content-Type: application/problem+json',
]
const BODY = JSON.stringify({ title: 'Too Many Requests', status: 429 })

/** @param {readonly string[]} lines @param {string} body */
const fault = (lines, body = BODY) =>
  faultOfDenial({ status: 429, head: `${lines.join('\r\n')}\r\n\r\n`, body })

it('a denial that says everything has no fault', () => {
  expect(fault(HEAD)).toBe(null)
})

it('one decided without Redis tells no quota, and the rest of it all the same', () => {
  const local = HEAD.filter(line => !line.startsWith('X-RateLimit'))
  expect(fault(local)).toBe(null)
  expect(fault(local.filter(line => !line.startsWith('Retry-After')))).toContain('Retry-After')
})

it('each part that is missing or wrong is named', () => {
  for (const line of HEAD.slice(1)) {
    const [name = ''] = line.split(':')
    expect(fault(HEAD.filter(other => other !== line))).toContain(name)
  }
  expect(fault(HEAD.map(line => line.replace('Retry-After: 1', 'Retry-After: 0')))).toBe('Retry-After: 0')
  expect(fault(HEAD, '{')).toBe('body is not JSON: {')
  expect(fault(HEAD, '{"status":200}')).toBe('body: {"status":200}')
})
