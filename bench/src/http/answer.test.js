import { expect, it } from 'vitest'
import { readAnswer } from './answer.js'

const ANSWER = 'HTTP/1.1 429 Too Many Requests\r\nContent-Length: 5\r\nx: y\r\n\r\nhello'

it('an answer is whole when its last byte is there', () => {
  for (let length = 0; length < ANSWER.length; length++)
    expect(readAnswer(ANSWER.slice(0, length))).toBe(null)
  expect(readAnswer(ANSWER)).toEqual({ status: 429, headLength: ANSWER.length - 5, length: ANSWER.length })
})

it('an answer without a length is refused, because its end could not be told', () => {
  expect(() => readAnswer('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')).toThrow(
    'without a length',
  )
})
