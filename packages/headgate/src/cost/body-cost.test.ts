import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { graphqlCost } from './graphql-cost.js'
import { jsonRpcCost } from './json-rpc-cost.js'

const MOST = 2 ** 32 - 1
const aliases = (count: number, field = 'user(id: 1) { name }') =>
  Array.from({ length: count }, (_, index) => `a${index}: ${field}`).join(' ')

describe('graphqlCost', () => {
  it.each<[string, string, number]>([
    ['one field', '{ me { name email } }', 1],
    ['a thousand aliases', `query { ${aliases(1_000)} }`, 1_000],
    [
      'a mutation of aliases',
      `mutation Try($p: [String!] = ["}{"]) @live { ${aliases(3, 'login(p: $p)')} }`,
      3,
    ],
    ['strings and comments that look like fields', '{ a(s: "} { b c", t: """ "b\\"""} """) # { d e\n b }', 2],
    ['inline fragments', '{ ... on Query { a b } ... @include(if: $x) { c } ...{ d } }', 4],
    ['fragments', 'query { ...F x } fragment F on Query { a ...G } fragment G on Query { b c }', 4],
    ['a fragment spread twice', '{ ...F ...F } fragment F on Query { a b }', 4],
    ['a directive that skips', '{ a @skip(if: true) b }', 2],
    ['the most expensive of several operations', 'query A { a } query B { b c }', 2],
    ['nothing to execute', 'fragment F on Query { a b c }', 1],
    ['commas and a byte order mark', '\ufeff{ a, b,, c }', 3],
    ['a description', '"""what it does""" query A { a b }', 2],
  ])('graphqlCost counts the root fields of an operation: %s', (_, document, cost) => {
    expect(graphqlCost({ query: document })).toBe(cost)
    expect(graphqlCost(document)).toBe(cost)
  })

  it('graphqlCost counts the operation that is named', () => {
    const query = 'query A { a } query B { b c d }'
    expect(graphqlCost({ query, operationName: 'A' })).toBe(1)
    expect(graphqlCost({ query, operationName: 'none' })).toBe(3)
  })

  it('graphqlCost counts every field where it is told to', () => {
    expect(graphqlCost('{ me { a: posts { id } b: posts { id } ...F } } fragment F on User { x y }')).toBe(1)
    const all = { fields: 'all' } as const
    expect(
      graphqlCost('{ me { a: posts { id } b: posts { id } ...F } } fragment F on User { x y }', all),
    ).toBe(7)
  })

  it('graphqlCost adds up a batch, and takes a request without a document as a stored one', () => {
    expect(graphqlCost(Array.from({ length: 1_000 }, () => ({ query: '{ a }' })))).toBe(1_000)
    expect(graphqlCost([{ query: '{ a b }' }, { documentId: 'x' }, null, 7])).toBe(5)
    expect(graphqlCost([{ documentId: 'x' }, { query: '{ a }' }], { stored: 10 })).toBe(11)
    for (const nothing of [undefined, null, 7, [], {}, { query: 7 }, '']) expect(graphqlCost(nothing)).toBe(1)
  })

  it('graphqlCost counts the names of a document it cannot parse, which is never less than what a server finds in it', () => {
    for (const document of [
      '{ a b c',
      '{ a b c )',
      'type T { a: Int }',
      '{ a(s: "x) { b c }',
      '{ a: } b c',
      '...a b c',
    ]) {
      expect(graphqlCost(document)).toBeGreaterThanOrEqual(3)
    }
  })

  it('graphqlCost is the maximum for fragments that spread themselves, or that double too often', () => {
    expect(graphqlCost('{ ...A } fragment A on Q { a ...B } fragment B on Q { b ...A }')).toBe(MOST)
    const doubling = Array.from(
      { length: 60 },
      (_, index) => `fragment F${index} on Q { a ...F${index + 1} ...F${index + 1} }`,
    )
    expect(graphqlCost(`{ ...F0 } ${doubling.join(' ')} fragment F60 on Q { a }`)).toBe(MOST)
    const chain = Array.from(
      { length: 20_000 },
      (_, index) => `fragment F${index} on Q { a ...F${index + 1} }`,
    )
    expect(graphqlCost(`{ ...F0 } ${chain.join(' ')} fragment F20000 on Q { a }`)).toBe(20_001)
  })

  it('graphqlCost is the maximum for spreads in a document it cannot parse, and takes the more expensive of two documents', () => {
    const doubling = 'query { ...A } fragment A on Q { b ...A($x: 1) }'
    expect(graphqlCost(doubling)).toBe(2 ** 32 - 1)
    expect(graphqlCost({ query: '{ a }', documentId: 'x' }, { stored: 10 })).toBe(10)
    expect(graphqlCost({ query: '{ a }' }, { stored: 10 })).toBe(1)
  })

  it('graphqlCost takes time in proportion to the text: a million hostile characters, read again for each, would never end', () => {
    const hostile: ((size: number) => string)[] = [
      size => '{a'.repeat(size),
      size => `{ a${'('.repeat(size)}`,
      size => `{ ${'"'.repeat(size)}`,
      size => `{ a(s: """${'\\"""'.repeat(size)}`,
      size => `{ a(s: "${'\\"'.repeat(size)}`,
      size => `{ ${'...{'.repeat(size)}`,
      size => `${'#\n'.repeat(size)}{ a }`,
      size => `{ ${'"\n'.repeat(size)}`,
      size => `{ a ${'@a('.repeat(size)}`,
      size => `{ ${'...F '.repeat(size)} } fragment F on Q { ${'a '.repeat(size)} }`,
      size => {
        const parts = Array.from({ length: size / 25 }, (_, index) => index)
        const chain = parts.map(index => `fragment P${index} on Q { ...X ...P${index + 1} }`)
        return `{ ...P0 } ${chain.join(' ')} fragment X on Q { ${parts.map(index => `...Y${index}`).join(' ')} }`
      },
    ]
    for (const make of hostile) expect(graphqlCost(make(250_000))).toBeGreaterThan(0)
  })

  it('graphqlCost never throws, and is never below the fields a document was made with', () => {
    const noise = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc
        .array(
          fc.constantFrom(
            '{',
            '}',
            '(',
            ')',
            '...',
            'on',
            'query',
            'fragment',
            'a',
            ':',
            '@',
            '"',
            '"""',
            '\\',
            '#',
            '\n',
            '$',
            '1',
          ),
          {
            maxLength: 60,
          },
        )
        .map(parts => parts.join(' ')),
    )
    fc.assert(
      fc.property(noise, document => {
        const cost = graphqlCost(document)
        expect(Number.isInteger(cost) && cost >= 1 && cost <= MOST).toBe(true)
      }),
      { numRuns: 300 },
    )
    const space = fc.constantFrom(' ', '\n', ',', ' # { x }\n')
    const field = fc.tuple(
      fc.constantFrom('a', 'b: a', 'a(x: {y: [1, "}"]})', 'a @d', 'c { d e }', '...{ a }'),
      space,
    )
    fc.assert(
      fc.property(fc.array(field, { minLength: 1, maxLength: 50 }), fields => {
        expect(graphqlCost(`{ ${fields.map(parts => parts.join('')).join('')} }`)).toBe(fields.length)
      }),
      { numRuns: 300 },
    )
  })
})

it('jsonRpcCost counts the calls of a batch', () => {
  const call = { jsonrpc: '2.0', method: 'add', params: [1, 2], id: 1 }
  expect(jsonRpcCost(call)).toBe(1)
  expect(jsonRpcCost(Array.from({ length: 1_000 }, () => call))).toBe(1_000)
  for (const nothing of [undefined, null, [], 'x']) expect(jsonRpcCost(nothing)).toBe(1)
})
