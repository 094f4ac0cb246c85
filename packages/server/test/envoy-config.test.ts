/** Files of envoyproxy/ratelimit: what is rejected, with its place, and how descriptors match patterns. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadDescriptors } from '../src/envoy/config/load-descriptors.js'
import { parseDescriptorFile } from '../src/envoy/config/parse-descriptors.js'
import { matchDescriptor } from '../src/envoy/match-descriptor.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-envoy-config-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function load(text: string) {
  const file = join(folder, 'edge.yaml')
  writeFileSync(file, text)
  return loadDescriptors(file)
}

const limited = (rate: string) => `domain: edge\ndescriptors:\n  - { key: a, rate_limit: { ${rate} } }\n`

describe('a file is rejected with', () => {
  it.each([
    ['domain: expected a non-empty text; got nothing', 'descriptors: []'],
    ['file: expected one of domain, descriptors; got "domian"; did you mean "domain"?', 'domian: edge'],
    ['descriptors: expected a list of descriptors; got 7', 'domain: edge\ndescriptors: 7'],
    ['descriptors[0].key: expected a non-empty text', 'domain: edge\ndescriptors: [{ value: a }]'],
    [
      'got "rate_limits"; did you mean "rate_limit"?',
      'domain: edge\ndescriptors: [{ key: a, rate_limits: {} }]',
    ],
    [
      'descriptors[1]: expected each key and value once',
      'domain: edge\ndescriptors: [{ key: a }, { key: a }]',
    ],
    [
      'descriptors[1]: expected each key and value once; got key "a" with this value again',
      'domain: edge\ndescriptors: [{ key: a, value: b }, { key: a, value: b }]',
    ],
    [
      'descriptors[0].descriptors[0].rate_limit.unit: expected one of second',
      'domain: edge\ndescriptors: [{ key: a, descriptors: [{ key: b, rate_limit: { unit: fortnight, requests_per_unit: 1 } }] }]',
    ],
    ['rate_limit.unit: expected either a unit or a window', limited('requests_per_unit: 1')],
    [
      'rate_limit.unit: expected either a unit or a window',
      limited('unit: day, window: 1d, requests_per_unit: 1'),
    ],
    ['rate_limit.requests_per_unit: expected a whole number', limited('unit: day, requests_per_unit: -1')],
    ['rate_limit.requests_per_unit: expected a whole number', limited('unit: day')],
    ['rate_limit.unit: expected none beside unlimited', limited('unlimited: true, unit: day')],
    [
      'rate_limit.algorithm: expected one of',
      limited('unit: day, requests_per_unit: 1, algorithm: fixed-window'),
    ],
    [
      'rate_limit.burst: expected beside algorithm token-bucket',
      limited('unit: day, requests_per_unit: 1, algorithm: sliding-window-log, burst: 2'),
    ],
    ['rate_limit.window: expected a duration', limited('window: 2y, requests_per_unit: 1')],
    [
      'replaces[0].name: expected another; got its own',
      limited('name: x, replaces: [{ name: x }], unlimited: true'),
    ],
    ['replaces[0].name: expected a non-empty text', limited('replaces: [{ name: "" }], unlimited: true')],
    [
      'share_threshold: expected beside a value with *',
      'domain: edge\ndescriptors: [{ key: a, share_threshold: true }]',
    ],
    [
      'shadow_mode: expected true or false; got "yes"',
      'domain: edge\ndescriptors: [{ key: a, shadow_mode: "yes" }]',
    ],
    ['edge.yaml: ', 'domain: [edge'],
  ])('a file of Envoy limits is rejected: %s', async (complaint, text) => {
    await expect(load(text)).rejects.toThrow(complaint)
  })

  it('a folder without files is rejected, and so are two files of a domain', async () => {
    const other = mkdtempSync(join(tmpdir(), 'headgate-envoy-config-'))
    await expect(loadDescriptors(other)).rejects.toThrow('expected a folder with YAML files; got none in it')
    writeFileSync(join(other, 'a.yaml'), 'domain: edge')
    writeFileSync(join(other, 'b.yml'), 'domain: other')
    expect([...(await loadDescriptors(other)).keys()]).toEqual(['edge', 'other'])
    writeFileSync(join(other, 'c.yaml'), 'domain: edge')
    await expect(loadDescriptors(other)).rejects.toThrow('c.yaml: domain: expected one file a domain')
    rmSync(other, { recursive: true })
    await expect(loadDescriptors(other)).rejects.toThrow(
      'expected a file or a folder that can be read; got ENOENT',
    )
  })
})

describe('a pattern', () => {
  const matches = (pattern: string, value: string) => {
    const { root } = parseDescriptorFile({
      domain: 'edge',
      descriptors: [{ key: 'a', value: pattern, rate_limit: { unlimited: true } }],
    })
    return matchDescriptor(root, [{ key: 'a', value }]) !== null
  }

  it.each([
    ['/files/*', ['/files/', '/files/a', '/files/a/b'], ['/file', 'x/files/a']],
    ['*.png', ['.png', 'a.png'], ['a.pngx', 'png']],
    ['a*b*c', ['abc', 'axbxc', 'abbcc'], ['ab', 'acb', 'abcd']],
    ['*x*x*', ['xx', 'axbxc'], ['x', 'ax']],
    ['ab*ba', ['abba', 'abxba'], ['aba']],
    ['*', ['', 'anything'], []],
  ])('a pattern matches as it should: %s', (pattern, those, others) => {
    expect(those.map(value => matches(pattern, value))).toEqual(those.map(() => true))
    expect(others.map(value => matches(pattern, value))).toEqual(others.map(() => false))
  })

  it('a pattern takes linear time, whatever the value', () => {
    const beganMs = process.cpuUsage().user
    expect(matches(`${'*a'.repeat(50)}*b`, 'a'.repeat(100_000))).toBe(false)
    expect((process.cpuUsage().user - beganMs) / 1000).toBeLessThan(1_000)
  })
})
