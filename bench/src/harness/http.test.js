import { expect, it } from 'vitest'
import { readResponse } from './http.js'

const RESPONSE = 'HTTP/1.1 429 Too Many Requests\r\nContent-Length: 5\r\nx: y\r\n\r\nhello'

it('a response is whole when its last byte is there', () => {
  for (let length = 0; length < RESPONSE.length; length++)
    expect(readResponse(RESPONSE.slice(0, length))).toBe(undefined)
  expect(readResponse(RESPONSE)).toEqual({
    status: 429,
    headLength: RESPONSE.length - 5,
    length: RESPONSE.length,
  })
})

it('a response without a length is an error, because its end could not be told', () => {
  expect(() => readResponse('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')).toThrow(
    'without a length',
  )
})
