import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MODEL_ANSWERS } from '../../test/support/model-answers.js'
import { type AnswerFormat, answerFormat, UsageReader } from './read-usage.js'

const bytesOf = (text: string) => new TextEncoder().encode(text)

function read(format: AnswerFormat, ...chunks: readonly Uint8Array[]) {
  const reader = new UsageReader(format)
  for (const chunk of chunks) reader.write(chunk)
  return { ...reader.usage(), textBytes: reader.textBytes }
}

const usageOf = (format: AnswerFormat, text: string) => read(format, bytesOf(text))

describe('reading the usage of an answer', () => {
  it.each(MODEL_ANSWERS)(
    '$name: finds it, wherever the bytes are cut',
    ({ contentType, body, input, output }) => {
      const format = answerFormat(contentType) as AnswerFormat
      const bytes = bytesOf(body)
      const whole = read(format, bytes)
      expect(whole).toMatchObject({ input, output, total: input + output })
      for (let cut = 0; cut <= bytes.length; cut++) {
        expect(read(format, bytes.subarray(0, cut), bytes.subarray(cut))).toEqual(whole)
      }
      expect(read(format, ...[...bytes].map(byte => Uint8Array.of(byte)))).toEqual(whole)
    },
  )

  it('counts the generated text alone, in bytes', () => {
    const delta = { choices: [{ delta: { role: 'assistant', content: 'Grüße' } }] }
    expect(usageOf('events', `data: ${JSON.stringify(delta)}\n\n`).textBytes).toBe(7)
    const typed = { type: 'content_block_delta', delta: { type: 'text_delta', text: 'a "b"' } }
    expect(usageOf('events', `data: ${JSON.stringify(typed)}\n\n`).textBytes).toBe(5)
    expect(usageOf('events', 'data: {"delta":"abc"}\n\ndata: {"text":"abc"}\n\n').textBytes).toBe(3)
  })

  it.each([
    ['a string', '"12"'],
    ['negative', '-1'],
    ['fractional', '1.5'],
    ['beyond all counts', '1e30'],
    ['true', 'true'],
    ['an object', '{"prompt_tokens":3}'],
    ['a list', '[3]'],
    ['endless', '1'.repeat(100)],
    ['no JSON', '12abc'],
  ])('a count that is %s is invalid, and the others hold', (_name, value) => {
    const usage = usageOf('json', `{"usage":{"prompt_tokens":${value},"completion_tokens":4}}`)
    expect(usage).toMatchObject({ input: 'invalid', output: 4, total: null })
  })

  it('null and a missing count are no count', () => {
    expect(usageOf('json', '{"usage":{"prompt_tokens":null,"completion_tokens":4}}')).toMatchObject({
      input: null,
      output: 4,
    })
    expect(usageOf('json', '{"usage":null}')).toMatchObject({ input: null, output: null, total: null })
    expect(usageOf('json', '{"data":{"usage":{"prompt_tokens":1}}}')).toMatchObject({ input: null })
  })

  it('what is nested too deeply to matter hides nothing behind it', () => {
    const deep = `{"a":${'{"x":['.repeat(5_000)}"usage"${']}'.repeat(5_000)},"usage":{"input_tokens":3}}`
    expect(usageOf('json', deep)).toMatchObject({ input: 3 })
  })

  it('an event that breaks off does not spoil the next', () => {
    const text = 'data: {"choices":[{"delta":"\n\ndata: {"usage":{"prompt_tokens":3}}\n\n'
    expect(usageOf('events', text)).toMatchObject({ input: 3 })
  })

  it('agrees with JSON.parse on any JSON, however it is cut', () => {
    const count = fc.oneof(
      fc.nat(10_000),
      fc.constant(null),
      fc.string(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
    )
    const answer = fc.record({
      before: fc.jsonValue({ maxDepth: 4 }),
      usage: fc.record({ prompt_tokens: count, completion_tokens: count, details: fc.jsonValue() }),
      after: fc.jsonValue({ maxDepth: 4 }),
    })
    const isCount = (value: unknown) =>
      typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 2 ** 32
    const expected = (value: unknown) => (isCount(value) ? Number(value) : value === null ? null : 'invalid')
    fc.assert(
      fc.property(answer, fc.array(fc.nat()), fc.nat(3), (given, cuts, spaces) => {
        const bytes = bytesOf(JSON.stringify(given, null, spaces))
        const at = [0, ...cuts.map(cut => cut % bytes.length).toSorted((a, b) => a - b), bytes.length]
        const chunks = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
        const parsed = JSON.parse(JSON.stringify(given)).usage
        expect(read('json', ...chunks)).toMatchObject({
          input: expected(parsed.prompt_tokens),
          output: expected(parsed.completion_tokens),
        })
      }),
    )
  })

  it('takes any bytes, and the same however they are cut', () => {
    const noise = fc.array(
      fc.oneof(
        fc.constantFrom(
          '{',
          '}',
          '[',
          ']',
          '"',
          '\\',
          ':',
          ',',
          '\n',
          '\r',
          'data:',
          '"usage":{',
          '"prompt_tokens":7',
          'null',
        ),
        fc.string(),
      ),
    )
    fc.assert(
      fc.property(noise, fc.constantFrom<AnswerFormat>('json', 'events'), (parts, format) => {
        const bytes = bytesOf(parts.join(''))
        const one = read(format, bytes)
        expect(read(format, ...[...bytes].map(byte => Uint8Array.of(byte)))).toEqual(one)
      }),
    )
  })

  it('keeps nothing of what it has read', () => {
    const reader = new UsageReader('events')
    const held = () => JSON.stringify(reader).length
    reader.write(bytesOf('data: {"usage":{"prompt_tokens":3}}\n\n'))
    const before = held()
    for (let time = 0; time < 1_000; time++)
      reader.write(bytesOf(`data: {"${'k'.repeat(5_000)}":"${'[{'.repeat(1_000)}`))
    expect(held()).toBeLessThan(before + 500)
  })
})

it('an answer is read by its type', () => {
  expect(answerFormat('text/event-stream')).toBe('events')
  expect(answerFormat('Application/JSON; charset=utf-8')).toBe('json')
  expect(answerFormat('application/problem+json')).toBe('json')
  expect(answerFormat('text/html')).toBeNull()
  expect(answerFormat('')).toBeNull()
})
