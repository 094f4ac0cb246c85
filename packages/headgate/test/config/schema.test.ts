import { readdirSync, readFileSync } from 'node:fs'
import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import * as gateway from '../../src/config/file/gateway.js'
import * as identify from '../../src/config/file/identify.js'
import * as limit from '../../src/config/file/limit.js'
import * as policy from '../../src/config/file/policy.js'
import * as policyFile from '../../src/config/file/policy-file.js'
import * as rule from '../../src/config/file/rule.js'
import * as tier from '../../src/config/file/tier.js'
import * as tokens from '../../src/config/file/tokens.js'
import { parseConfig } from '../../src/config/parse-config.js'
import { configSchema } from '../../src/config/schema.js'
import { defaultTiers } from '../../src/policy/tiers.js'

const script = new URL('../../scripts/policy-file-page.mjs', import.meta.url).href
const { policyFilePage } = (await import(script)) as { policyFilePage(shapes: object): string }
const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
const accepts = new Ajv({ allErrors: true, strictSchema: true }).compile(configSchema())

describe('what is published is what the file is read by', () => {
  const page = policyFilePage({
    ...gateway,
    ...identify,
    ...limit,
    ...policy,
    ...policyFile,
    ...rule,
    ...tier,
    ...tokens,
    defaultTiers,
  })

  it('the JSON Schema is what npm run generate writes', () => {
    expect(JSON.parse(read('../headgate.schema.json'))).toEqual(configSchema())
  })

  it('the reference page is what npm run generate writes', () => {
    expect(read('../../../docs/reference/policy-file.md')).toBe(page)
  })

  it('the example of the reference page is sound', async () => {
    const example = /```yaml\n(tiers[\s\S]*?)```/.exec(page)?.[1] ?? ''
    const config = await parseConfig(example, 'example.yaml')
    expect(config.rules.map(({ name }) => name)).toEqual([
      'login',
      'search',
      '/users/:id/export tier:free|pro',
    ])
  })
})

describe('the schema agrees with the reader', () => {
  const accepted = readdirSync(new URL('../fixtures/config/accepted/', import.meta.url))
  it.each(accepted)('the schema and the reader both accept %s', async name => {
    const text = read(`fixtures/config/accepted/${name}`)
    await expect(parseConfig(text, name)).resolves.toBeDefined()
    accepts(parse(text))
    expect(accepts.errors ?? []).toEqual([])
  })

  // The fixture notes the mistakes that a schema cannot find: undefined names, contradicting settings, and errors of
  // syntax.
  const rejected = readdirSync(new URL('../fixtures/config/rejected/', import.meta.url)).filter(
    name => !name.startsWith('yaml-') && !name.startsWith('json-'),
  )
  it.each(rejected)('the schema and the reader both reject %s, or the file says why not', name => {
    const text = read(`fixtures/config/rejected/${name}`)
    const isKnownToPass = /^# schema: /m.test(text)
    expect(accepts(parse(text))).toBe(isKnownToPass)
  })
})
